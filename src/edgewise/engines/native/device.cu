// What both kernels share. A kernel runs all rounds of a stretch in one launch: a block of threads,
// or several for its columns, belongs to a node, and blocks meet as nodes do: each waits for its
// neighbours' words only, not for all others. All blocks must be resident at once (a cooperative
// launch says so), or one waits for ever. Compiled at run time, with
//   REAL     the run's numbers
//   ROW      the data's
//   EACH     columns of a thread
//   THREADS  of a block
//   DEGREE   edges of a node, at most
//   CROWD    blocks that a multiprocessor has to have room for
// and what is after `#ifndef` below, where it is known then: what runs is shorter.

enum { SAGA, SVRG, PLAIN_SVRG, LSVRG };
enum { LOGISTIC, SQUARED, HUBER, SMOOTHED_HINGE };
#define WARP 32
#define WARPS (THREADS / WARP)
#define MOST_BATCH 64  // samples of a node and round; a block has as many threads at least
#define VALUES (MOST_BATCH + 2)  // that blocks of a node add up: margins, two distances
#define AT_ONCE (EACH <= 2 ? 16 : EACH <= 4 ? 8 : EACH <= 8 ? 4 : 2)  // far vectors asked for
#define ROWS 8  // of a warp at once, in a full pass: memory is far, and should be asked for much
#define APART 32  // words from one block's to the next, so that no two share a cache line

struct Numbers {  // of a node; `cuda_state.NUMBERS` has them in this order
    REAL gamma, rate, degree, ridge, threshold, shrink, lower, upper, gain, part, enough;
    REAL of_loss, stop;
};

struct Run {  // words of 64 bits each; `cuda_state.Run` has them in this order
    // data: (N, n) rows, (N,) labels and weights, or none
    const ROW* rows; const REAL* labels; const REAL* scale;
    const int* first; const int* counts;  // (V,) of a node's samples
    // draws: (rounds, V batch) samples and (V batch,) shares, (rounds, V) coins; local training has
    // (rounds, V, draws) bits
    const long long* picked; const REAL* share; const unsigned* coins; const unsigned* bits;
    // directed edges in the order of their owners
    const int* begin; const int* other; const int* reverse; const REAL* rho;
    const Numbers* numbers;  // (V,)
    const int* steps;  // (V,) of local training
    // state; X and what is sent twice, for even rounds and odd ones
    REAL* X; REAL* S; REAL* R; REAL* mean; REAL* sent;
    REAL* table;  // (H, N): a block changes its own
    // epochs: (V, n) vectors, (V H) numbers
    REAL* total; REAL* start; REAL* last; REAL* path;
    int* done; int* length; const int* shortest; const int* longest;
    long long* made;  // (V,) steps of local training
    // what blocks say to each other: (2, V H, VALUES) parts of sums, (H, N) parts of a pass's
    // margins; words of (V H) rounds and passes, and one that ends all
    REAL* parts; REAL* margins; unsigned* ready; unsigned* passed; unsigned* status;
    REAL* model;  // (V, n) where a pass is taken
    long long V, n, N, H, E, width, batch, rounds, draws, looks, edge_form, estimator, loss, stops;
    long long patience;  // looks at a word, after which it will not come
};

#ifndef ESTIMATOR
#define ESTIMATOR r.estimator
#define LOSS r.loss
#define EDGE_FORM r.edge_form
#define STOPS r.stops
#define BATCH ((int) r.batch)
#endif

#define ALL_COLUMNS(k) int k = 0; k < EACH; ++k

struct Here {  // a block's node and columns
    int i, h, unit, n, lo, hi;
    int c;  // a thread's first column; the next are THREADS apart
    long long own;  // where that is in a vector of all nodes
    __device__ Here(const Run& r, int node, int part) {
        i = node; h = part; unit = i * (int) r.H + h; n = (int) r.n;
        lo = h * (int) r.width; hi = min(lo + (int) r.width, n);
        c = lo + threadIdx.x; own = (long long) i * n + c;
    }
    __device__ bool has(int k) const { return c + k * THREADS < hi; }
    __device__ const ROW* row(const Run& r, int q) const { return r.rows + (long long) q * n + c; }
};

struct Node {  // what a block knows of its node, in shared memory
    int is, gone;  // whose, or -1; whether a word has been waited for in vain
    int first, count, begin, degree;
    Numbers own;
    int word[DEGREE];  // of the neighbours' blocks
    long long far[DEGREE];  // where in X, or among messages, a neighbour's vector is
    REAL rho[DEGREE];  // zero beyond the last edge
};

// At the start of a kernel.
__device__ void knows_nobody(Node& node) {
    if (threadIdx.x == 0) node.is = -1, node.gone = 0;
    __syncthreads();
}

// From here on the block knows the node; where it has no other that takes nothing.
__device__ void meet(const Run& r, const Here& at, Node& node) {
    if (node.is == at.i) return;
    __syncthreads();
    int begin = r.begin[at.i], degree = r.begin[at.i + 1] - begin;
    for (int e = threadIdx.x; e < DEGREE; e += THREADS) {
        int other = e < degree ? r.other[begin + e] : at.i;
        int row = EDGE_FORM ? (e < degree ? r.reverse[begin + e] : 0) : other;
        node.word[e] = (other * (int) r.H + at.h) * APART;
        node.far[e] = (long long) row * at.n;
        node.rho[e] = e < degree ? r.rho[begin + e] : 0;
    }
    if (threadIdx.x == 0) {
        node.is = at.i, node.begin = begin, node.degree = degree, node.own = r.numbers[at.i];
        node.first = r.first[at.i], node.count = r.counts[at.i];
    }
    __syncthreads();
}

__device__ REAL clip(REAL a, REAL least, REAL most) {
    return a < least ? least : a > most ? most : a;
}

__device__ REAL prox(const Numbers& own, REAL y) {
    REAL soft = (y - clip(y, -own.threshold, own.threshold)) * own.shrink;
    return clip(soft, own.lower, own.upper);
}

struct Sample {  // what is asked for long before the margin is known
    REAL label, weight, old;
    __device__ Sample(const Run& r, int row, REAL remembered) {
        label = steady(r.labels + row);
        weight = r.scale ? steady(r.scale + row) : 1;
        old = remembered;
    }
    __device__ REAL slope(const Run& r, const Numbers& own, REAL z) const {
        REAL s = z - label;
        if (LOSS == LOGISTIC) s = -label / (1 + exp(label * z));
        if (LOSS == HUBER) s = clip(s, -own.of_loss, own.of_loss);
        if (LOSS == SMOOTHED_HINGE) s = -label * clip(1 - label * z, 0, own.of_loss) / own.of_loss;
        return s * weight;
    }
};

__device__ void load_row(const Run& r, const Here& at, int q, REAL* d) {
    const ROW* row = at.row(r, q);
    for (ALL_COLUMNS(k)) d[k] = at.has(k) ? (REAL) steady(row + k * THREADS) : 0;
}

__device__ void row_soon(const Run& r, const Here& at, int q) {
    const ROW* row = at.row(r, q);
    for (ALL_COLUMNS(k))
        if (at.has(k)) soon(row + k * THREADS);
}

__device__ REAL warp_sum(REAL a) {
    for (int k = WARP / 2; k; k /= 2) a += __shfl_xor_sync(~0u, a, k);
    return a;
}

// Of all threads, to each of them. Calls take turns with two `spaces` (WARPS,): whoever is slow may
// still be reading the last one.
__device__ REAL block_sum(REAL a, REAL* space) {
    int lane = threadIdx.x % WARP;
    a = warp_sum(a);
    if (lane == 0) space[threadIdx.x / WARP] = a;
    __syncthreads();
    return warp_sum(lane < WARPS ? space[lane] : 0);
}

// Until the word is there; false: it does not come, or another gave up.
__device__ bool arrived(const Run& r, const unsigned* word, unsigned value) {
    for (long long looks = 0; load_acquire(word) < value; ++looks) {
        if (looks % 1024 == 1023 && load_acquire(r.status)) return false;
        if (looks > r.patience) { store_release(r.status, 1); return false; }
        give_way();
    }
    return true;
}

// Until all neighbours' blocks of these columns have said `value`, by those threads that do not
// have their hands full: the last ones. To be followed by __syncthreads, after which `gone` says
// whether they do not.
__device__ void await_neighbours(const Run& r, Node& node, unsigned value) {
    for (int e = THREADS - 1 - threadIdx.x; e < node.degree; e += THREADS)
        if (!arrived(r, r.ready + node.word[e], value)) node.gone = 1;
}

// The same of the node's own blocks, by the threads of a warp.
__device__ void await_own(const Run& r, const Here& at, Node& node, unsigned value) {
    for (int k = threadIdx.x % WARP; k < r.H; k += WARP)
        if (!arrived(r, r.ready + (at.i * (int) r.H + k) * APART, value)) node.gone = 1;
    __syncwarp();
}

// Some edges' far vectors, asked for together, as each takes its time.
__device__ void ask(const Here& at, const Node& node, const REAL* from, int e, REAL (*far)[EACH]) {
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j) {
        bool there = e + j < node.degree;
        const REAL* vector = from + (there ? node.far[e + j] : 0);
        for (ALL_COLUMNS(k)) far[j][k] = there && at.has(k) ? fresh(vector + k * THREADS) : 0;
    }
}

// The sum of what neighbours pull with, or in edge form of their messages.
__device__ void hear(
    const Run& r, const Here& at, const Node& node, const REAL* x, REAL* heard, long long t
) {
    const REAL* from = EDGE_FORM ? r.sent + (t & 1) * r.E * at.n : r.X + (t & 1) * r.V * at.n;
    for (ALL_COLUMNS(k)) heard[k] = 0;
    for (int e = 0; e < node.degree; e += AT_ONCE) {
        REAL far[AT_ONCE][EACH];
        ask(at, node, from + at.c, e, far);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            REAL rho = node.rho[e + j];
            for (ALL_COLUMNS(k)) heard[k] += EDGE_FORM ? far[j][k] : rho * (far[j][k] - x[k]);
        }
    }
}

// m_ij <- 2 rho_ij x_i - m_ji
__device__ void answer(
    const Run& r, const Here& at, const Node& node, const REAL* x, long long t
) {
    const REAL* from = r.sent + (t & 1) * r.E * at.n + at.c;
    REAL* into = r.sent + ((~t & 1) * r.E + node.begin) * at.n + at.c;
    for (int e = 0; e < node.degree; e += AT_ONCE) {
        REAL far[AT_ONCE][EACH];
        ask(at, node, from, e, far);
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            REAL twice = 2 * node.rho[e + j];
            REAL* mine = into + (long long) (e + j) * at.n;
            for (ALL_COLUMNS(k))
                if (e + j < node.degree && at.has(k)) mine[k * THREADS] = twice * x[k] - far[j][k];
        }
    }
}

// Mean gradient and table anew at the node's r.model, by all its blocks together. What they wrote
// of the model before is theirs alone, so there is nothing to wait for first. False: a word did not
// come.
__device__ bool full_pass(const Run& r, const Here& at, Node& node) {
    int lane = threadIdx.x % WARP, end = node.first + node.count;
    REAL* table = r.table + at.h * r.N;
    const REAL* model = r.model + at.own - at.c;
    unsigned now = r.passed[at.unit * APART] + 1;
    __syncthreads();
    for (int q = node.first + threadIdx.x / WARP * ROWS; q < end; q += WARPS * ROWS) {
        REAL z[ROWS] = {};
#pragma unroll 4
        for (int c = at.lo + lane; c < at.hi; c += WARP) {
            REAL x = model[c];
#pragma unroll
            for (int j = 0; j < ROWS; ++j)
                z[j] += (REAL) steady(at.row(r, min(q + j, end - 1)) - at.c + c) * x;
        }
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            z[j] = warp_sum(z[j]);
            if (lane == 0 && q + j < end) r.margins[at.h * r.N + q + j] = z[j];
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) store_release(r.passed + at.unit * APART, now);
    for (int k = threadIdx.x; k < r.H; k += THREADS)
        if (!arrived(r, r.passed + (at.i * (int) r.H + k) * APART, now)) node.gone = 1;
    __syncthreads();
    if (node.gone) return false;
    for (int q = node.first + threadIdx.x; q < end; q += THREADS) {
        REAL z = 0;
        for (int k = 0; k < r.H; ++k) z += fresh(r.margins + k * r.N + q);
        table[q] = Sample(r, q, 0).slope(r, node.own, z);
    }
    __syncthreads();
    REAL sum[EACH] = {};
    constexpr int together = EACH <= 2 ? 16 : EACH <= 4 ? 8 : 4;
#pragma unroll together
    for (int q = node.first; q < end; ++q) {
        REAL s = table[q];
        const ROW* row = at.row(r, q);
        for (ALL_COLUMNS(k))
            if (at.has(k)) sum[k] += s * (REAL) steady(row + k * THREADS);
    }
    for (ALL_COLUMNS(k))
        if (at.has(k)) r.mean[at.own + k * THREADS] = sum[k] / node.count;
    return true;
}
