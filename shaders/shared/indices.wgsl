// Indices as tensors hold them: of 64 bits (WIDE), or of 32.
#include "shared/index.wgsl"

#if WIDE
alias Index = vec2<u32>;
#else
alias Index = u32;
#endif

fn index_of(given: Index) -> i32 {
#if WIDE
    return narrow(given);
#else
    return bitcast<i32>(given);
#endif
}
