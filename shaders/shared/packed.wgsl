// Numbers of a few bits in words of 32, from the lowest bits up.

// How a tensor holds them: `bits` of each, 2^shift in a word.
struct Packing {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) bits: u32,
    shift: u32,
}

// The word that has number `i`.
fn word_of(i: u32, packing: Packing) -> u32 {
    return i >> packing.shift;
}

// Where number `i` begins in its word.
fn low_bit(i: u32, packing: Packing) -> u32 {
    return (i & ((1u << packing.shift) - 1u)) * packing.bits;
}

// Number `i` of the word that has it.
fn number_of(word: u32, i: u32, packing: Packing) -> u32 {
    return (word >> low_bit(i, packing)) & (0xffffffffu >> (32u - packing.bits));
}
