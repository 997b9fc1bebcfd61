// Four columns of the sums of a part.
fn store(m: u32, n: u32, part: u32, v: vec4<f32>) {
    if m >= p.product.m || n >= p.product.n { return; }
    c[quad_of_part(part, m, n)] = v;
}
