//! Functions of JavaScript in values that have to be `Send`, which those functions are not: they stay in a
//! list of their thread, and the value holds their place in it, until it is dropped.

use std::cell::RefCell;
use std::sync::Arc;

use js_sys::Function;

thread_local! {
    static FUNCTIONS: RefCell<Vec<Option<Function>>> = const { RefCell::new(Vec::new()) };
}

/// The place of a function in the list of the thread that it was given in.
struct Place(usize);

impl Drop for Place {
    fn drop(&mut self) {
        let function = FUNCTIONS.with_borrow_mut(|list| list.get_mut(self.0)?.take());
        drop(function);
    }
}

/// A function of the thread that it was given in.
#[derive(Clone)]
pub struct Callback(Arc<Place>);

impl Callback {
    pub fn new(function: Function) -> Callback {
        let place = FUNCTIONS.with_borrow_mut(|list| {
            let free = list.iter().position(Option::is_none);
            let place = free.unwrap_or_else(|| {
                list.push(None);
                list.len() - 1
            });
            list[place] = Some(function);
            place
        });
        Callback(Arc::new(Place(place)))
    }

    /// The function; `None` in another thread than its own.
    pub fn function(&self) -> Option<Function> {
        FUNCTIONS.with_borrow(|list| list.get(self.0.0).cloned().flatten())
    }
}
