//! A backend with an allocator of the user's own.

use crate::*;

/// The backend [`Bare`] with an allocator.
struct Pooled(Bare, Arc<Counting>);

impl Backend for Pooled {
    fn describe(&self) -> &Description {
        self.0.describe()
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.0.supports(node)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        self.0.create_context(config)
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        self.1.clone()
    }
}

/// Host memory, twice as much for a tensor as it needs, and at most so much at once; counted.
struct Counting {
    most: usize,
    given: Mutex<Vec<usize>>,
    back: Mutex<Vec<usize>>,
}

impl Counting {
    fn new(most: usize) -> Arc<Counting> {
        Arc::new(Counting {
            most,
            given: Mutex::default(),
            back: Mutex::default(),
        })
    }

    fn given(&self) -> Vec<usize> {
        self.given.lock().unwrap().clone()
    }

    fn back(&self) -> Vec<usize> {
        self.back.lock().unwrap().clone()
    }
}

impl Allocator for Counting {
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        2 * tensor.bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        if bytes > self.most {
            let error = kilim::Error::new(ErrorCode::Limit, "the pool is empty");
            return Err(error.with_got(bytes));
        }
        self.given.lock().unwrap().push(bytes);
        Ok(Box::new(HostMemory::zeroed(bytes)?))
    }

    fn release(&self, memory: Box<dyn ArenaMemory>) {
        let memory: Box<dyn std::any::Any> = memory;
        let memory = memory.downcast::<HostMemory>().unwrap();
        self.back.lock().unwrap().push(memory.base().1);
    }
}

#[test]
fn a_backend_may_bring_an_allocator() {
    let allocator = Counting::new(1 << 20);
    let pooled = Pooled(Bare::new(), allocator.clone());
    let runtime = Runtime::default().with_backend(Arc::new(pooled));
    let open = |sharing| {
        let session = runtime.session(graph(), options(&["bare"], sharing));
        pollster::block_on(session).unwrap()
    };
    let mut own = open(Sharing::Own);
    assert!(allocator.given().is_empty(), "nothing is planned yet");
    run(&mut own, 100).unwrap();
    let needed = arena(&own);
    assert_eq!(allocator.given(), [needed]);
    let plan = own.report().memory.remove(0);
    assert!(plan.tensors.iter().all(|t| t.bytes == 800), "{plan:?}");
    assert_eq!(plan.bytes.next_multiple_of(64), needed);
    // In one go, and not again while it suffices.
    run(&mut own, 50).unwrap();
    run(&mut own, 100).unwrap();
    assert_eq!(allocator.given(), [needed]);
    own.clear();
    assert_eq!(allocator.back(), [needed]);
    run(&mut own, 100).unwrap();
    assert_eq!(allocator.given(), [needed; 2]);
    drop(own);
    assert_eq!(allocator.back(), [needed; 2]);

    let mut shared = [(); 2].map(|()| open(Sharing::ShareOneThread));
    for session in &mut shared {
        run(session, 100).unwrap();
    }
    assert_eq!(allocator.given(), [needed; 3]);
    drop(shared);
    assert_eq!(allocator.back(), [needed; 3]);

    let backend = pollster::block_on(runtime.backend(&BackendId::new("bare"))).unwrap();
    let given = backend.create_arena(needed).unwrap();
    run(&mut open(Sharing::External(vec![given.clone()])), 100).unwrap();
    assert_eq!(allocator.given(), [needed; 4]);
    assert_eq!(allocator.back(), [needed; 3]);
    drop(given);
    assert_eq!(allocator.back(), [needed; 4]);
}

#[test]
fn an_allocator_that_has_no_more_is_an_error_and_not_the_end() {
    let allocator = Counting::new(4096);
    let pooled = Pooled(Bare::new(), allocator.clone());
    let runtime = Runtime::default().with_backend(Arc::new(pooled));
    let session = runtime.session(graph(), options(&["bare"], Sharing::Own));
    let mut session = pollster::block_on(session).unwrap();
    run(&mut session, 100).unwrap();
    let error = run(&mut session, 100_000).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(error.message(), "the pool is empty");
    run(&mut session, 100).unwrap();
    drop(session);
    assert_eq!(allocator.given(), allocator.back());
}
