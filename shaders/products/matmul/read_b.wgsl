// Four columns of b.

#if READ_B == n4
fn load_b(k: u32, n: u32, base: u32) -> vec4<f32> {
    let valid = k < p.product.k && n < p.product.n;
    return select(vec4<f32>(0.0), vec4<f32>(b[select(0u, (base + k * p.product.b_row + n) / 4u, valid)]), valid);
}
#elif READ_B == strided
fn element_b(k: u32, n: u32, base: u32) -> f32 {
    let valid = k < p.product.k && n < p.product.n;
    return select(0.0, f32(b[select(0u, base + k * p.product.b_row + n * p.product.b_col, valid)]), valid);
}

fn load_b(k: u32, n: u32, base: u32) -> vec4<f32> {
    return vec4<f32>(element_b(k, n, base), element_b(k, n + 1u, base), element_b(k, n + 2u, base), element_b(k, n + 3u, base));
}
#endif

// Four rows of b at four columns.
#if READ_B == k4
fn column_b(k: u32, n: u32, base: u32) -> vec4<f32> {
    let valid = k < p.product.k && n < p.product.n;
    return select(vec4<f32>(0.0), vec4<f32>(b[select(0u, (base + n * p.product.b_col + k) / 4u, valid)]), valid);
}

fn block_b(k: u32, n: u32, base: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(column_b(k, n, base), column_b(k, n + 1u, base), column_b(k, n + 2u, base), column_b(k, n + 3u, base)));
}
#else
fn block_b(k: u32, n: u32, base: u32) -> mat4x4<f32> {
    return mat4x4<f32>(load_b(k, n, base), load_b(k + 1u, n, base), load_b(k + 2u, n, base), load_b(k + 3u, n, base));
}
#endif
