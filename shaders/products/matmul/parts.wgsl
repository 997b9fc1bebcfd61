// How k is parted: `parts` parts of `part` elements, whole tiles of every kind. The sums of a part are rows of quads of f32, the parts of a
// matrix behind each other.
struct Parted {
    // Structures in uniforms begin and end at 16 bytes.
    @align(16) parts: u32,
    part: u32,
}

// Where the quad of the sums is that begins at column `n` of row `m` of the part numbered `part` over all matrices.
fn quad_of_part(part: u32, m: u32, n: u32) -> u32 {
    return (part * p.product.m + m) * ((p.product.n + 3u) / 4u) + n / 4u;
}
