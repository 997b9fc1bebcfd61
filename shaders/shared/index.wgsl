// Index arithmetic of kernels with one thread an element. Dispatches are spread over x and y.

const LINEAR = 64u;

fn linear_id(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.x + id.y * groups.x * LINEAR;
}

fn group_id(id: vec3<u32>, groups: vec3<u32>) -> u32 {
    return id.x + id.y * groups.x;
}

// An index of 64 bits; one that 32 bits do not hold becomes one that is out of every range.
fn narrow(index: vec2<u32>) -> i32 {
    let low = bitcast<i32>(index.x);
    return select(0x7fffffff, low, bitcast<i32>(index.y) == low >> 31u);
}
