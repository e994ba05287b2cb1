// Rounds of `methods.primal_dual`, held to it by the tests. Columns do not mix but in the margins of
// the samples: these are worked out a round ahead, so that a block's parts go out with its word.

__device__ const long long* picked_in(const Run& r, const Here& at, long long t) {
    return r.picked + (t * r.V + at.i) * BATCH;
}

// The first sample of a node's rounds, known two rounds ahead: no load before the row's own.
struct Picks {
    int node = -1, now, next;
    long long later;
    __device__ void step(const Run& r, const Here& at, long long t) {
        bool kept = node == at.i;
        now = kept ? next : (int) picked_in(r, at, t)[0];
        next = (int) (kept ? later : picked_in(r, at, min(t + 1, r.rounds - 1))[0]);
        later = picked_in(r, at, min(t + 2, r.rounds - 1))[0];
        node = at.i;
    }
};

// This block's parts of what round t begins with: of the margins of its samples at x, d being the
// first of them, and of how far x has come, squared. Then its word: all that round t reads of it is
// there.
__device__ void report(
    const Run& r, const Here& at, const REAL* x, const REAL* d, REAL moved, REAL gained, long long t
) {
    __shared__ REAL space[VALUES][WARPS];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int values = STOPS ? BATCH + 2 : BATCH;
    for (int q = 0; q < values; ++q) {
        REAL a = q == BATCH ? moved : gained, other[EACH];
        if (q > 0 && q < BATCH) load_row(r, at, (int) picked_in(r, at, t)[q], other);
        if (q < BATCH) {
            a = 0;
            for (ALL_COLUMNS(k)) a += (q > 0 ? other[k] : d[k]) * x[k];
        }
        a = warp_sum(a);
        if (lane == 0) space[q][warp] = a;
    }
    __syncthreads();
    if (warp > 0) return;
    REAL* parts = r.parts + ((t & 1) * r.V * r.H + at.unit) * VALUES;
    for (int q = lane; q < values; q += WARP) {
        REAL a = 0;
        for (int k = 0; k < WARPS; ++k) a += space[q][k];
        parts[q] = a;
    }
    __syncwarp();
    if (lane == 0) store_release(r.ready + at.unit * APART, t + 1);
}

__device__ REAL added_up(const Run& r, const Here& at, int q, long long t) {
    const REAL* parts = r.parts + ((t & 1) * r.V + at.i) * r.H * VALUES + q;
    REAL a = 0;
    for (int k = 0; k < r.H; ++k) a += fresh(parts + k * VALUES);
    return a;
}

// What SVRG does before a step: its epoch may be over. False: a word did not come.
__device__ bool epoch(const Run& r, const Here& at, Node& node, const REAL* x, long long t) {
    bool plain = ESTIMATOR == PLAIN_SVRG;
    if (threadIdx.x < WARP) await_own(r, at, node, t + 1);
    __syncthreads();
    if (node.gone) return false;
    int done = r.done[at.unit] + (plain ? 0 : 1), length = r.length[at.unit];
    REAL path = 0;
    bool over = done >= length;
    if (STOPS) {
        path = r.path[at.unit] + sqrt(added_up(r, at, BATCH, t));
        bool nowhere = sqrt(added_up(r, at, BATCH + 1, t)) < node.own.stop * path;
        over |= done >= r.shortest[at.i] && nowhere;
    }
    for (ALL_COLUMNS(k)) {
        long long c = at.own + k * THREADS;
        if (!at.has(k)) continue;
        if (over) r.model[c] = plain ? x[k] : (r.total[c] + x[k]) / max(done, 1);
        if (!plain) r.total[c] = over ? 0 : r.total[c] + x[k];
        if (over && STOPS) r.start[c] = x[k];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        r.done[at.unit] = (over ? 0 : done) + (plain ? 1 : 0);
        if (over && !plain) r.length[at.unit] = min(2 * length, r.longest[at.i]);
        if (STOPS) r.path[at.unit] = over ? 0 : path;
    }
    return !over || full_pass(r, at, node);
}

// Slopes of the round's samples, less what is remembered, each by a thread of the first warps. The
// neighbours' words are waited for by the others.
__device__ bool wait_and_weigh(
    const Run& r, const Here& at, const Picks& picks, Node& node, REAL* slopes, long long t
) {
    int q = threadIdx.x;
    bool weighs = q < BATCH;
    int row = weighs && q > 0 ? (int) picked_in(r, at, t)[q] : picks.now;
    REAL* remembered = r.table + at.h * r.N + row;
    const Sample sample(r, row, *remembered);
    REAL share = weighs ? r.share[at.i * BATCH + q] : 0, s = 0;
    await_neighbours(r, node, t + 1);
    if (threadIdx.x / WARP * WARP < BATCH) {
        await_own(r, at, node, t + 1);
        if (weighs) s = sample.slope(r, node.own, added_up(r, at, q, t));
        if (weighs) slopes[q] = (s - sample.old) * share;
    }
    __syncthreads();
    if (node.gone) return false;
    if (weighs && ESTIMATOR == SAGA) *remembered = s;  // only now: a sample may be here twice
    return true;
}

__device__ bool one_round(const Run& r, const Here& at, Picks& picks, Node& node, long long t) {
    __shared__ REAL slopes[MOST_BATCH];
    const REAL* X = r.X + (t & 1) * r.V * at.n + at.own;
    REAL* after = r.X + (~t & 1) * r.V * at.n + at.own;
    REAL x[EACH], d[EACH], coming[EACH], heard[EACH], S[EACH], R[EACH], mean[EACH];
    meet(r, at, node);
    // what needs no word of others is asked for before they are waited for
    picks.step(r, at, t);
    load_row(r, at, picks.now, d);
    load_row(r, at, picks.next, coming);
    if (t + 1 < r.rounds)
        for (int q = 1; q < BATCH; ++q) row_soon(r, at, (int) picked_in(r, at, t + 1)[q]);
    for (ALL_COLUMNS(k)) {
        x[k] = at.has(k) ? X[k * THREADS] : 0;
        S[k] = at.has(k) && !EDGE_FORM ? r.S[at.own + k * THREADS] : 0;
        R[k] = at.has(k) && !EDGE_FORM ? r.R[at.own + k * THREADS] : 0;
    }
    if (ESTIMATOR == SVRG || ESTIMATOR == PLAIN_SVRG)
        if (!epoch(r, at, node, x, t)) return false;
    for (ALL_COLUMNS(k)) mean[k] = at.has(k) ? r.mean[at.own + k * THREADS] : 0;
    if (!wait_and_weigh(r, at, picks, node, slopes, t)) return false;
    hear(r, at, node, x, heard, t);
    const Numbers& own = node.own;
    REAL gain = t == 0 ? own.gain : 2, moved = 0, gained = 0;
    for (ALL_COLUMNS(k)) {
        if (!at.has(k)) continue;
        long long c = at.own + k * THREADS;
        REAL sum = slopes[0] * d[k];
        for (int q = 1; q < BATCH; ++q)
            sum += slopes[q] * (REAL) steady(at.row(r, picked_in(r, at, t)[q]) + k * THREADS);
        REAL g = sum + mean[k] + own.ridge * x[k], new_x;
        if (EDGE_FORM) {
            new_x = prox(own, own.gamma * (x[k] * own.rate - g + heard[k]));
        } else {
            REAL s = S[k] + gain * heard[k], u = s + R[k];
            new_x = prox(own, x[k] + own.gamma * (u - g));
            r.S[c] = s;
            r.R[c] = own.degree * (new_x - x[k]) - u;
        }
        if (ESTIMATOR == SAGA) r.mean[c] = mean[k] + own.part * sum;
        if (STOPS) {
            moved += (new_x - x[k]) * (new_x - x[k]);
            gained += (new_x - r.start[c]) * (new_x - r.start[c]);
        }
        after[k * THREADS] = new_x;
        if (ESTIMATOR == LSVRG) r.model[c] = x[k];
        x[k] = new_x;
    }
    if (EDGE_FORM) answer(r, at, node, x, t);
    // a coin decides on the next snapshot, which is taken where the round began
    if (ESTIMATOR == LSVRG && r.coins[t * r.V + at.i] < 4294967296.0 / node.count)
        if (!full_pass(r, at, node)) return false;
    if (t + 1 < r.rounds) report(r, at, x, coming, moved, gained, t + 1);
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, CROWD) primal_dual(const Run r) {
    __shared__ Node node;
    int h = blockIdx.x % (int) r.H, first = blockIdx.x / (int) r.H, apart = gridDim.x / (int) r.H;
    if (r.rounds == 0) return;
    knows_nobody(node);
    for (int i = first; i < r.V; i += apart) {
        Here at(r, i, h);
        REAL x[EACH], d[EACH], moved = 0, gained = 0;
        load_row(r, at, (int) picked_in(r, at, 0)[0], d);
        for (ALL_COLUMNS(k)) {
            long long c = at.own + k * THREADS;
            x[k] = at.has(k) ? r.X[c] : 0;
            if (!at.has(k) || !STOPS) continue;
            moved += (x[k] - r.last[c]) * (x[k] - r.last[c]);
            gained += (x[k] - r.start[c]) * (x[k] - r.start[c]);
        }
        report(r, at, x, d, moved, gained, 0);
        __syncthreads();
    }
    Picks picks;
    for (long long t = 0; t < r.rounds; ++t)
        for (int i = first; i < r.V; i += apart)
            if (!one_round(r, Here(r, i, h), picks, node, t)) return;
}
