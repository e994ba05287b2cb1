// A CUDA kernel on a CPU, for tests: a block is a thread of the system, so that blocks meet through
// atomic words as on a GPU; a thread of a block is a fibre, which runs until a barrier. Fibres go on
// in an order drawn anew at every turn, so that a barrier which is missing shows.

#include <sched.h>
#include <ucontext.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __launch_bounds__(threads, crowd)

using std::exp;
using std::max;
using std::min;
using std::sqrt;

struct Index { int x; };
thread_local Index threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {
enum State { READY, AT_WARP, AT_BLOCK, OVER };
const int STACK = 1 << 16;

struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state = READY;
    double given[2] = {};  // by turns: whoever is slow may still read the last one
    int turn = 0;
};

struct Block {
    std::vector<Fibre> fibres;
    ucontext_t outside;
    int now = 0;
    const void* run = nullptr;
    void (*kernel)(const void*) = nullptr;
};
thread_local Block* block;

void leave(State state) {
    Fibre& own = block->fibres[block->now];
    own.state = state;
    swapcontext(&own.context, &block->outside);
}

void begin() {
    block->kernel(block->run);
    leave(OVER);
}

// Whoever waits goes on once all of the group do.
bool release(State state, int first, int last) {
    for (int k = first; k < last; ++k)
        if (block->fibres[k].state != state) return false;
    for (int k = first; k < last; ++k) block->fibres[k].state = READY;
    return true;
}

bool run_block(int which, int grid, int threads, void (*kernel)(const void*), const void* run) {
    Block own;
    block = &own;
    own.fibres.resize(threads), own.kernel = kernel, own.run = run;
    blockIdx.x = which, gridDim.x = grid, blockDim.x = threads;
    for (Fibre& f : own.fibres) {
        f.stack.reset(new char[STACK]);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get(), f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, begin, 0);
    }
    unsigned seed = 12345u + which;
    for (;;) {
        bool moved = false, over = true;
        seed = seed * 1664525u + 1013904223u;
        int shift = seed >> 8, step = seed >> 31 ? 1 : threads - 1;
        for (int k = 0; k < threads; ++k) {
            own.now = (int) (((long long) k * step + shift % threads) % threads);
            Fibre& f = own.fibres[own.now];
            if (f.state != READY) continue;
            moved = true;
            threadIdx.x = own.now;
            swapcontext(&own.outside, &f.context);
        }
        for (Fibre& f : own.fibres) over &= f.state == OVER;
        if (over) return true;
        for (int k = 0; k < threads; k += 32) moved |= release(AT_WARP, k, k + 32);
        moved |= release(AT_BLOCK, 0, threads);
        if (!moved) return false;  // some are at a barrier that the others never come to
    }
}
}  // namespace emulated

inline void __syncthreads() { emulated::leave(emulated::AT_BLOCK); }
inline void __syncwarp() { emulated::leave(emulated::AT_WARP); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <class T> T __shfl_xor_sync(unsigned, T a, int k) {
    auto& fibres = emulated::block->fibres;
    int turn = fibres[threadIdx.x].turn ^= 1;
    fibres[threadIdx.x].given[turn] = a;
    __syncwarp();
    return (T) fibres[threadIdx.x ^ k].given[turn];
}

inline unsigned load_acquire(const unsigned* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_release(unsigned* word, unsigned value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
template <class T> T fresh(const T* a) { return *(const volatile T*) a; }
template <class T> T steady(const T* a) { return *a; }
inline void soon(const void*) {}
inline void give_way() {
    sched_yield();
    emulated::leave(emulated::READY);
}

// False: threads of a block parted ways at a barrier.
inline bool launch(int grid, int threads, void (*kernel)(const void*), const void* run) {
    std::atomic<bool> well(true);
    std::vector<std::thread> blocks;
    for (int b = 0; b < grid; ++b)
        blocks.emplace_back([&, b] {
            if (!emulated::run_block(b, grid, threads, kernel, run)) well = false;
        });
    for (auto& b : blocks) b.join();
    return well;
}
