// Elements that indices move: from x to y at the places they name (SCATTER), or from there.
#case Move
#define T: Moved
#define SCATTER: bool
#define REDUCTION = None
#case Combine
#define T: Word
#define SCATTER = 1
#define REDUCTION = Add Mul Max Min
#include "shared/indices.wgsl"
#if REDUCTION != None
#include "shared/combine.wgsl"
#endif

#if REDUCTION == None
alias Stored = T;
#else
alias Stored = atomic<u32>;
#endif

#read x: array<T>
#read indices: array<Index>
#write y: array<Stored>
#fault

// `far` is the place that the indices name for element `i`.
fn move_element(i: u32, far: u32) {
#if REDUCTION != None
    combine(far, x[i]);
#elif SCATTER
    y[far] = x[i];
#else
    y[i] = x[far];
#endif
}
