// Indices as tensors hold them: INDEX is i64, in two words, or a type of one word.
#type Index i64 i32 u32 f32
#define INDEX: Index
#include "shared/index.wgsl"

#if INDEX == i64
alias Index = vec2<u32>;
#else
alias Index = INDEX;
#endif

// An index as a number of 32 bits; one that they do not hold becomes one that is out of every range.
fn index_of(given: Index) -> i32 {
#if INDEX == i64
    let low = bitcast<i32>(given.x);
    return select(0x7fffffff, low, bitcast<i32>(given.y) == low >> 31u);
#elif INDEX == u32
    return i32(min(given, 0x7fffffffu));
#else
    return i32(given);
#endif
}

// Which of `size` places an index means, counted from the end where it is negative; -1 where it is none of them.
fn place_of(given: Index, size: u32) -> i32 {
    let index = index_of(given);
    let at = select(index, index + i32(size), index < 0);
    return select(-1, at, at >= 0 && at < i32(size));
}
