// How blocks of a GPU speak to each other, for `device.cu`.

__device__ unsigned load_acquire(const unsigned* word) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

__device__ void store_release(unsigned* word, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// From the cache that all blocks share: what others write in the course of a kernel.
template <class T> __device__ T fresh(const T* a) { return __ldcg(a); }

// Data that no kernel changes.
template <class T> __device__ T steady(const T* a) { return __ldg(a); }

// It will be read: have it brought from memory meanwhile.
__device__ void soon(const void* a) { asm volatile("prefetch.global.L2 [%0];" ::"l"(a)); }

__device__ void give_way() {}
