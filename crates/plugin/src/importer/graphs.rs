//! The graphs that a library makes: the model's, and those of bodies that have begun in it.

use kilim_core::{Error, ErrorCode, Limits, Result};
use kilim_formats::{Draft, DraftNode};

/// A graph, and the bodies that its next node gets.
struct Open {
    draft: Draft,
    bodies: Vec<(String, Draft)>,
}

/// The model, and the bodies in each other that have begun.
pub struct Graphs {
    importer: String,
    /// The graph that calls add to.
    innermost: Open,
    /// The graphs around it, the model's first, each with the attribute that the body in it becomes.
    around: Vec<(Open, String)>,
    node_count: usize,
}

impl Graphs {
    /// An empty model of the importer with this id.
    pub fn new(importer: &str) -> Graphs {
        Graphs {
            importer: importer.to_string(),
            innermost: Open {
                draft: Draft::new(importer),
                bodies: Vec::new(),
            },
            around: Vec::new(),
            node_count: 0,
        }
    }

    /// The graph that calls add to.
    pub fn draft(&mut self) -> &mut Draft {
        &mut self.innermost.draft
    }

    /// The graph of the model, whichever bodies have begun in it.
    pub fn model(&mut self) -> &mut Draft {
        match self.around.first_mut() {
            Some((model, _)) => &mut model.draft,
            None => &mut self.innermost.draft,
        }
    }

    /// Nodes of all graphs.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// The next node, with the bodies that have ended before it.
    ///
    /// # Errors
    /// Those of [`Draft::node`].
    pub fn node(&mut self, node: DraftNode) -> Result<()> {
        let bodies = std::mem::take(&mut self.innermost.bodies);
        self.innermost.draft.node(DraftNode { bodies, ..node })?;
        self.node_count += 1;
        Ok(())
    }

    /// Begins a body, the graph of an attribute of the next node.
    ///
    /// # Errors
    /// `InvalidModel` where the attribute has no name, `Limit` where too many bodies have begun in each other.
    pub fn begin(&mut self, attribute: &str, limits: &Limits) -> Result<()> {
        if attribute.is_empty() {
            return Err(self.invalid("the attribute of a body has no name"));
        }
        // The graph of the model is one as well.
        let depth = self.around.len() + 2;
        if depth > limits.depth {
            let message = "the model has too many graphs in each other";
            return Err(Limits::exceeded("depth", message, limits.depth, depth));
        }
        let body = Open {
            draft: self.innermost.draft.body(),
            bodies: Vec::new(),
        };
        let around = std::mem::replace(&mut self.innermost, body);
        self.around.push((around, attribute.to_string()));
        Ok(())
    }

    /// Ends the body that has begun last.
    ///
    /// # Errors
    /// `InvalidModel` where none has, or a body in it has no node.
    pub fn end(&mut self) -> Result<()> {
        let Some((around, attribute)) = self.around.pop() else {
            return Err(self.invalid("a body ends that has not begun"));
        };
        let ended = std::mem::replace(&mut self.innermost, around);
        let draft = self.whole(ended)?;
        self.innermost.bodies.push((attribute, draft));
        Ok(())
    }

    /// The model.
    ///
    /// # Errors
    /// `InvalidModel` where a body has not ended, or has no node.
    pub fn finish(mut self) -> Result<Draft> {
        if !self.around.is_empty() {
            return Err(self.invalid("a body has no end"));
        }
        let empty = Open {
            draft: Draft::default(),
            bodies: Vec::new(),
        };
        let model = std::mem::replace(&mut self.innermost, empty);
        self.whole(model)
    }

    fn whole(&self, graph: Open) -> Result<Draft> {
        match &graph.bodies[..] {
            [] => Ok(graph.draft),
            [(attribute, _), ..] => {
                Err(self.invalid(&format!("the body `{attribute}` has no node")))
            }
        }
    }

    /// A mistake of the library's.
    fn invalid(&self, what: &str) -> Error {
        let what = format!("the importer `{}`: {what}", self.importer);
        Error::new(ErrorCode::InvalidModel, what)
    }
}
