// Index arithmetic of kernels with one thread an element. Dispatches are spread over x and y.

const LINEAR = 64u;

fn linear_id(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.x + id.y * groups.x * LINEAR;
}

fn group_id(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.x + id.y * groups.x;
}
