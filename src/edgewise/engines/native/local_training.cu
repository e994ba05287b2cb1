// Rounds of `methods.local_training`, held to it by the tests: a block has a node, whose model,
// mean gradient and inbox stay in its registers, and takes all steps of a round by itself.

#define AHEAD 4  // steps; what memory takes to answer

struct Epoch {  // of SVRG
    int done, length;
    REAL path;
};

// Before a step. Where an epoch is over mean and table are taken anew. False: a word did not come.
__device__ bool local_epoch(
    const Run& r, const Here& at, Node& node, Epoch& epoch, const REAL* x, REAL* mean
) {
    __shared__ REAL spaces[2][WARPS];
    bool over = ++epoch.done >= epoch.length;
    if (STOPS) {
        REAL moved = 0, gained = 0;
        for (ALL_COLUMNS(k)) {
            long long c = at.own + k * THREADS;
            if (!at.has(k)) continue;
            moved += (x[k] - r.last[c]) * (x[k] - r.last[c]);
            gained += (x[k] - r.start[c]) * (x[k] - r.start[c]);
            r.last[c] = x[k];
        }
        epoch.path += sqrt(block_sum(moved, spaces[0]));
        bool nowhere = sqrt(block_sum(gained, spaces[1])) < node.own.stop * epoch.path;
        over |= epoch.done >= r.shortest[at.i] && nowhere;
    }
    for (ALL_COLUMNS(k)) {
        long long c = at.own + k * THREADS;
        if (!at.has(k)) continue;
        if (over) r.model[c] = (r.total[c] + x[k]) / max(epoch.done, 1);
        r.total[c] = over ? 0 : r.total[c] + x[k];
        if (over && STOPS) r.start[c] = x[k];
    }
    if (!over) return true;
    epoch.done = 0;
    epoch.length = min(2 * epoch.length, r.longest[at.i]);
    epoch.path = 0;
    if (!full_pass(r, at, node)) return false;
    for (ALL_COLUMNS(k)) mean[k] = at.has(k) ? r.mean[at.own + k * THREADS] : 0;
    return true;
}

// All steps of a node between two messages, by what was heard.
__device__ bool train(
    const Run& r, const Here& at, Node& node, REAL* x, const REAL* heard, long long t
) {
    __shared__ REAL spaces[2][WARPS], looking[2][WARPS];
    bool saga = ESTIMATOR == SAGA;
    const Numbers own = node.own;
    const unsigned* bits = r.bits + (t * r.V + at.i) * r.draws;
    int steps = r.steps[at.i], stretch = (steps + r.looks - 1) / r.looks, made = 0, until = stretch;
    int first = node.first, count = node.count;
    REAL before[EACH], mean[EACH], d[EACH], coming[EACH];
    for (ALL_COLUMNS(k)) {
        before[k] = x[k];
        mean[k] = at.has(k) ? r.mean[at.own + k * THREADS] : 0;
    }
    Epoch epoch = {};
    if (!saga) epoch = {r.done[at.i], r.length[at.i], STOPS ? r.path[at.i] : 0};
    auto sample = [&](int s) { return first + (int) ((unsigned long long) bits[s] * count >> 32); };
    int row = sample(0), last = -1;
    Sample now(r, row, r.table[row]);
    REAL last_new = 0, pull = own.enough * own.gamma * own.degree;
    load_row(r, at, row, d);
    while (made < steps) {
        if (!saga) {
            if (!local_epoch(r, at, node, epoch, x, mean)) return false;
            now.old = r.table[row];
        }
        // the next step's sample comes while this one is worked on. Thread 0 may be at writing what
        // the last step has remembered; what others did before, all have seen
        int next = sample(min(made + 1, steps - 1));
        Sample then(r, next, saga && next == last ? last_new : r.table[next]);
        load_row(r, at, next, coming);
        if (made + AHEAD < steps) row_soon(r, at, sample(made + AHEAD));
        REAL z = 0;
        for (ALL_COLUMNS(k)) z += d[k] * x[k];
        REAL s = now.slope(r, own, block_sum(z, spaces[made & 1])), change = s - now.old;
        if (saga && threadIdx.x == 0) r.table[row] = s;
        REAL moved = 0, way = 0;
        for (ALL_COLUMNS(k)) {
            REAL y = x[k] * own.rate - change * d[k] - mean[k] - own.ridge * x[k] + heard[k];
            REAL new_x = at.has(k) ? prox(own, own.gamma * y) : 0;
            moved += (new_x - x[k]) * (new_x - x[k]);
            way += (new_x - before[k]) * (new_x - before[k]);
            if (saga) mean[k] += own.part * (change * d[k]);
            x[k] = new_x;
            d[k] = coming[k];
        }
        if (saga && next == row) then.old = s;
        last = row, last_new = s, row = next, now = then;
        if (++made == until) {
            until += stretch;
            moved = block_sum(moved, looking[0]);
            way = block_sum(way, looking[1]);
            if (moved <= pull * pull * way) break;
        }
    }
    for (ALL_COLUMNS(k))
        if (at.has(k)) r.mean[at.own + k * THREADS] = mean[k];
    if (threadIdx.x == 0) {
        r.made[at.i] += made;
        if (!saga) r.done[at.i] = epoch.done, r.length[at.i] = epoch.length;
        if (STOPS) r.path[at.i] = epoch.path;
    }
    return true;
}

__device__ bool local_round(const Run& r, const Here& at, Node& node, long long t) {
    REAL x[EACH], heard[EACH];
    meet(r, at, node);
    await_neighbours(r, node, t);
    for (ALL_COLUMNS(k)) x[k] = at.has(k) ? r.X[at.own + k * THREADS] : 0;
    __syncthreads();
    if (node.gone) return false;
    hear(r, at, node, x, heard, t);
    if (!train(r, at, node, x, heard, t)) return false;
    for (ALL_COLUMNS(k))
        if (at.has(k)) r.X[at.own + k * THREADS] = x[k];
    answer(r, at, node, x, t);
    __syncthreads();
    if (threadIdx.x == 0) store_release(r.ready + at.i * APART, t + 1);
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, CROWD) local_training(const Run r) {
    __shared__ Node node;
    knows_nobody(node);
    for (long long t = 0; t < r.rounds; ++t)
        for (int i = blockIdx.x; i < r.V; i += gridDim.x)
            if (!local_round(r, Here(r, i, 0), node, t)) return;
}
