// Four columns of c: scale, bias, residual and activation.
fn store(m: u32, n: u32, batch: u32, v: vec4<f32>) {
    if m >= p.m || n >= p.n { return; }
#if A == conv4 || A == conv1
    let row = (m / p.positions) * p.c_image + (m % p.positions) * p.c_row;
#else
    let row = m * p.c_row;
#endif
    let at = batch * p.c_batch + row + n * p.c_col;
    var r = p.alpha * v;
#if BIAS
    let j = batch * p.bias_batch + m * p.bias_row + n * p.bias_col;
    r += p.beta * vec4<f32>(vec4<S>(bias[j], bias[j + p.bias_col], bias[j + 2u * p.bias_col], bias[j + 3u * p.bias_col]));
#endif
#if C4
#if RESIDUAL
    r += vec4<f32>(residual[at / 4u]);
#endif
    c[at / 4u] = vec4<S>(activate4(r, p.act, p.act_a, p.act_b));
#else
#if RESIDUAL
    r += vec4<f32>(vec4<S>(residual[at], residual[at + p.c_col], residual[at + 2u * p.c_col], residual[at + 3u * p.c_col]));
#endif
    r = activate4(r, p.act, p.act_a, p.act_b);
    for (var j = 0u; j < min(4u, p.n - n); j++) {
        c[at + j * p.c_col] = S(r[j]);
    }
#endif
}
