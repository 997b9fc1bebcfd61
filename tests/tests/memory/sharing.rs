//! Who owns the memory of intermediates.

use kilim::ErrorCode;
use kilim::core::Backend;
use kilim_tests::stand_in::StandIn;

use crate::*;

#[test]
fn sessions_of_one_thread_share_an_arena() {
    let sizes = [16, 32];
    let make = |size: usize, with: &Sharing| {
        session(convolutions(8, Dim::Known(size)), sharing(with.clone())).unwrap()
    };
    let own = sizes.map(|size| make(size, &Sharing::Own));
    let mut shared = sizes.map(|size| make(size, &Sharing::ShareOneThread));
    let most = own.iter().map(arena).max().unwrap();
    let sum: usize = own.iter().map(arena).sum();
    for s in &shared {
        assert_eq!(arena(s), most, "one arena, as large as the largest");
        assert_eq!(s.report().backends[0].arena_owner, "thread");
    }
    assert!(most < sum);
    let mut own = own;
    for _ in 0..2 {
        for (i, size) in sizes.into_iter().enumerate() {
            let x = weights(&[1, 8, size, size]);
            assert_eq!(
                run(&mut shared[i], &x).unwrap(),
                run(&mut own[i], &x).unwrap()
            );
        }
    }
    let mut moved = make(16, &Sharing::ShareOneThread);
    let x = weights(&[1, 8, 16, 16]);
    let elsewhere = std::thread::spawn(move || run(&mut moved, &x).unwrap_err());
    let error = elsewhere.join().unwrap();
    assert_eq!(error.code(), ErrorCode::State);
}

#[test]
fn the_caller_may_own_the_arena() {
    let cpu = cpu();
    let make = |size, arenas| {
        let with = sharing(Sharing::External(arenas));
        session(convolutions(8, Dim::Known(size)), with)
    };
    let mut own = session(convolutions(8, Dim::Known(32)), options()).unwrap();
    let needed = arena(&own);
    let given = cpu.create_arena(needed).unwrap();
    let mut large = make(32, vec![given.clone()]).unwrap();
    let mut small = make(16, vec![given.clone()]).unwrap();
    let x = weights(&[1, 8, 32, 32]);
    assert_eq!(run(&mut large, &x).unwrap(), run(&mut own, &x).unwrap());
    run(&mut small, &weights(&[1, 8, 16, 16])).unwrap();
    assert_eq!(large.report().backends[0].arena_owner, "external");
    assert_eq!(given.bytes(), needed);

    let error = make(64, vec![given.clone()])
        .err()
        .expect("it is too small");
    assert_eq!(error.code(), ErrorCode::Limit);
    assert!(error.expected().unwrap().starts_with("at least"), "{error}");
    let error = make(32, Vec::new()).err().expect("there is none");
    assert_eq!(error.code(), ErrorCode::Input);
    let other = StandIn::new(cpu.clone(), "other").create_arena(needed);
    let error = make(32, vec![other.unwrap()]).err();
    assert_eq!(
        error.expect("it is another backend's").code(),
        ErrorCode::Input
    );
    // Somebody else is in it.
    let other = given.attach();
    let lease = other.lease().unwrap();
    assert_eq!(run(&mut large, &x).unwrap_err().code(), ErrorCode::State);
    drop(lease);
    run(&mut large, &x).unwrap();
}

#[test]
fn an_arena_that_was_given_back_comes_again() {
    let mut s = session(convolutions(8, Dim::Known(32)), options()).unwrap();
    let x = weights(&[1, 8, 32, 32]);
    let (before, want) = (arena(&s), run(&mut s, &x).unwrap());
    s.clear();
    assert_eq!(arena(&s), 0);
    assert_eq!(run(&mut s, &x).unwrap(), want);
    assert_eq!(arena(&s), before);
}
