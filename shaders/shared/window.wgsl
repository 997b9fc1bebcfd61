// A window that slides along up to three axes, outermost first; an axis that is not there is a point.
struct Window {
    input: vec3<u32>,
    kernel: vec3<u32>,
    stride: vec3<u32>,
    dilation: vec3<u32>,
    // In front.
    pad: vec3<i32>,
}
