//! Points of a binary's code that a run passes or does not: where functions begin, and where their paths part or meet.

use wasmparser::Operator;

/// Numbers the points of a binary, whose functions are gone through in order.
#[derive(Default)]
pub struct Points {
    next: u32,
    /// Blocks that are open.
    depth: u32,
}

impl Points {
    /// The point at the begin of the next function.
    pub fn begin(&mut self) -> u32 {
        self.depth = 0;
        self.take()
    }

    /// The point right after an instruction, where there is one.
    pub fn after(&mut self, operator: &Operator<'_>) -> Option<u32> {
        match operator {
            Operator::Block { .. } => {
                self.depth += 1;
                return None;
            }
            Operator::Loop { .. } | Operator::If { .. } => self.depth += 1,
            Operator::End if self.depth == 0 => return None,
            Operator::End => self.depth -= 1,
            Operator::Else | Operator::BrIf { .. } => {}
            _ => return None,
        }
        Some(self.take())
    }

    /// How many there are up to here.
    pub fn count(&self) -> u32 {
        self.next
    }

    fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}
