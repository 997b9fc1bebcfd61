//! Which locals of a function are read later, at the points where its paths part or meet.

use wasmparser::Operator;

/// A block, loop or if of a function's body, or the body itself, by the indices of its instructions.
pub struct Frame {
    /// The index of the first instruction: the `block`, `loop` or `if` itself, or the first one of the body.
    pub begin: usize,
    /// The index of the `end`.
    pub end: usize,
    pub is_loop: bool,
}

/// The structure of a body: its frames, the body first, and of each instruction the frames it stands in, by the innermost and the
/// parents of each.
pub struct Shape {
    pub frames: Vec<Frame>,
    pub parents: Vec<usize>,
    /// The frame that each instruction stands in; `end` and `else` stand in the frame that they end.
    pub within: Vec<usize>,
    /// The `end` of the if that each `else` belongs to, and the `else` of each if, by the instruction's index.
    elses: Vec<Option<usize>>,
}

impl Shape {
    /// None where there are blocks of another kind.
    pub fn of(operators: &[Operator<'_>]) -> Option<Self> {
        let body = Frame {
            begin: 0,
            end: operators.len() - 1,
            is_loop: false,
        };
        let mut shape = Self {
            frames: vec![body],
            parents: vec![0],
            within: Vec::with_capacity(operators.len()),
            elses: vec![None; operators.len()],
        };
        let mut current = 0;
        for (i, operator) in operators.iter().enumerate() {
            shape.within.push(current);
            match operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                    shape.parents.push(current);
                    current = shape.frames.len();
                    shape.frames.push(Frame {
                        begin: i,
                        end: i,
                        is_loop: matches!(operator, Operator::Loop { .. }),
                    });
                }
                Operator::Else => shape.elses[shape.frames[current].begin] = Some(i),
                Operator::End if current != 0 => {
                    shape.frames[current].end = i;
                    current = shape.parents[current];
                }
                Operator::Try { .. } | Operator::TryTable { .. } => return None,
                _ => {}
            }
        }
        Some(shape)
    }

    /// The frame that a branch at the instruction names.
    pub fn target(&self, at: usize, depth: u32) -> usize {
        (0..depth).fold(self.within[at], |frame, _| self.parents[frame])
    }

    /// Where the arm of the frame ends that an instruction of the frame stands in: at its `else` or its `end`.
    pub fn end_of_arm(&self, frame: usize, at: usize) -> usize {
        let other = self.elses[self.frames[frame].begin].filter(|other| frame != 0 && at <= *other);
        other.unwrap_or(self.frames[frame].end)
    }

    /// Whether the frame begins at or after an instruction that it does not lie around.
    pub fn inside(&self, frame: usize, begin: usize) -> bool {
        frame != 0 && self.frames[frame].begin >= begin
    }

    /// Whether a loop lies around what stands in the frame.
    pub fn in_loop(&self, frame: usize) -> bool {
        let mut frame = frame;
        while frame != 0 && !self.frames[frame].is_loop {
            frame = self.parents[frame];
        }
        frame != 0
    }

    /// How many frames lie around the frame.
    pub fn depth(&self, frame: usize) -> u32 {
        let mut depth = 0;
        let mut frame = frame;
        while frame != 0 {
            frame = self.parents[frame];
            depth += 1;
        }
        depth
    }

    /// Where a branch to the frame goes on: none where it leaves the function.
    pub fn label(&self, frame: usize) -> Option<usize> {
        match (frame, self.frames[frame].is_loop) {
            (0, _) => None,
            (_, true) => Some(self.frames[frame].begin + 1),
            (_, false) => Some(self.frames[frame].end + 1),
        }
    }

    /// The instructions that may follow one, where it is not the next alone.
    fn following(&self, at: usize, operator: &Operator<'_>) -> Option<Vec<usize>> {
        let label = |depth| self.label(self.target(at, depth));
        Some(match operator {
            Operator::Br { relative_depth } => label(*relative_depth).into_iter().collect(),
            Operator::BrIf { relative_depth } => {
                let taken = label(*relative_depth);
                taken.into_iter().chain([at + 1]).collect()
            }
            Operator::BrTable { targets } => {
                let listed = targets.targets().flatten().chain([targets.default()]);
                listed.filter_map(label).collect()
            }
            Operator::Return | Operator::Unreachable => Vec::new(),
            // Its own frame comes after it in the list.
            Operator::If { .. } => {
                let other = self.elses[at];
                let frame = self.frames.partition_point(|frame| frame.begin <= at) - 1;
                vec![at + 1, other.unwrap_or(self.frames[frame].end) + 1]
            }
            Operator::Else => vec![self.frames[self.within[at]].end + 1],
            Operator::End if self.within[at] == 0 => Vec::new(),
            Operator::Loop { .. } | Operator::End => vec![at + 1],
            _ => return None,
        })
    }
}

/// The locals that are read later, at those instructions where paths begin.
pub struct Live {
    /// The locals that are read later, by the number of the path.
    sets: Vec<Set>,
    /// The path that begins at an instruction.
    paths: Vec<Option<usize>>,
}

impl Live {
    pub fn of(operators: &[Operator<'_>], shape: &Shape, locals: usize) -> Self {
        let mut paths = vec![None; operators.len()];
        let mut begins = Vec::new();
        let mut open = true;
        for (i, operator) in operators.iter().enumerate() {
            if open {
                paths[i] = Some(begins.len());
                begins.push(i);
            }
            open = shape.following(i, operator).is_some();
        }
        let mut live = Self {
            sets: vec![Set::new(locals); begins.len()],
            paths,
        };
        loop {
            let mut changed = false;
            for path in (0..begins.len()).rev() {
                let begin = begins[path];
                let end = begins.get(path + 1).map_or(operators.len(), |next| *next) - 1;
                let mut set = Set::new(locals);
                match shape.following(end, &operators[end]) {
                    Some(next) => next.iter().for_each(|i| set.add_all(live.at(*i))),
                    None => set.add_all(live.at(end + 1)),
                }
                for operator in operators[begin..=end].iter().rev() {
                    match operator {
                        Operator::LocalGet { local_index } => set.add(*local_index),
                        Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                            set.remove(*local_index);
                        }
                        _ => {}
                    }
                }
                if set != live.sets[path] {
                    live.sets[path] = set;
                    changed = true;
                }
            }
            if !changed {
                return live;
            }
        }
    }

    /// The locals that are read after the begin of a path.
    pub fn at(&self, instruction: usize) -> &Set {
        let path = self.paths[instruction];
        &self.sets[path.unwrap_or_else(|| unreachable!("no path begins at {instruction}"))]
    }
}

/// A set of locals.
#[derive(Clone, PartialEq)]
pub struct Set(Vec<u64>);

impl Set {
    pub fn new(locals: usize) -> Self {
        Self(vec![0; locals.div_ceil(64)])
    }

    pub fn add(&mut self, local: u32) {
        self.0[local as usize / 64] |= 1 << (local % 64);
    }

    fn remove(&mut self, local: u32) {
        self.0[local as usize / 64] &= !(1 << (local % 64));
    }

    pub fn add_all(&mut self, others: &Self) {
        self.0.iter_mut().zip(&others.0).for_each(|(a, b)| *a |= b);
    }

    pub fn common(&self, others: &Self) -> Self {
        Self(self.0.iter().zip(&others.0).map(|(a, b)| a & b).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let count = self.0.len() as u32 * 64;
        (0..count).filter(|local| self.0[*local as usize / 64] >> (local % 64) & 1 == 1)
    }
}
