use super::*;
use crate::backend::{DataLayout, Memory, Speed};

fn site(memory: Memory, flops: f64) -> Site {
    Site {
        memory,
        layout: DataLayout::ChannelsFirst,
        speed: Speed {
            flops_per_second: flops,
            bytes_per_second: flops,
            kernel_start: 1e-5,
            transfer_start: 1e-4,
            transfer_bytes_per_second: 1e9,
        },
    }
}

fn node(reads: &[usize], writes: &[usize], answers: &[Option<f64>]) -> Candidate {
    Candidate {
        answers: answers
            .iter()
            .map(|a| match a {
                Some(flops) => Ok(Cost {
                    flops: *flops,
                    bytes: 0.0,
                }),
                None => Err(Refusal::new("no")),
            })
            .collect(),
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    }
}

#[test]
fn a_small_side_island_joins_its_neighbours() {
    let sites = PerBackend::from_iter([site(Memory::Device, 1e12), site(Memory::Host, 1e10)]);
    let nodes = [
        node(&[0], &[1], &[Some(1e10), Some(1e10)]),
        node(&[1], &[2], &[None, Some(1e3)]),
        node(&[2], &[3], &[Some(1e3), Some(1e3)]),
        node(&[3], &[4], &[None, Some(1e3)]),
    ];
    let placed = place(&nodes, &[64; 5], &sites, Placement::Prefer).unwrap();
    assert_eq!(placed.at, [0, 1, 1, 1].map(BackendIndex));
    let moved = placed.moves[2].unwrap();
    assert_eq!((moved.from, moved.nodes), (BackendIndex(0), 1));
    assert!(moved.seconds < moved.instead_of);
    assert_eq!(placed.moves[1], None);
    let fixed = place(&nodes, &[64; 5], &sites, Placement::Fixed).unwrap();
    assert_eq!(fixed.at, [0, 1, 0, 1].map(BackendIndex));
}

/// The largest island of a backend stays there, unless prices alone count.
#[test]
fn the_order_of_preference_counts_unless_prices_do() {
    let sites = PerBackend::from_iter([1e9, 1e12, 1e10].map(|flops| site(Memory::Host, flops)));
    let nodes = [
        node(&[0], &[1], &[Some(1e10), Some(1e10), None]),
        node(&[1], &[2], &[None, None, Some(1e3)]),
    ];
    let at = |placement| place(&nodes, &[64; 3], &sites, placement).unwrap().at;
    assert_eq!(at(Placement::Fixed), [0, 2].map(BackendIndex));
    assert_eq!(at(Placement::Prefer), [0, 2].map(BackendIndex));
    assert_eq!(at(Placement::Priced), [1, 2].map(BackendIndex));
    // What one backend takes whole stays there, too.
    let whole = [node(&[0], &[1], &[Some(1e10), Some(1e10), None])];
    let at = |placement| place(&whole, &[64; 2], &sites, placement).unwrap().at;
    assert_eq!(at(Placement::Prefer), [0].map(BackendIndex));
    assert_eq!(at(Placement::Priced), [1].map(BackendIndex));
}

#[test]
fn nodes_that_nobody_takes_are_all_listed() {
    let sites = PerBackend::from_iter([site(Memory::Host, 1e10)]);
    let nodes = [node(&[0], &[1], &[None]), node(&[1], &[2], &[None])];
    assert_eq!(
        place(&nodes, &[4; 3], &sites, Placement::Prefer),
        Err(vec![0, 1])
    );
}

#[test]
fn what_crossings_eat_up_is_not_split() {
    // The device is twice as fast, but every second node is not for it.
    let sites = PerBackend::from_iter([site(Memory::Device, 2e10), site(Memory::Host, 1e10)]);
    let work = 1e6;
    let nodes: Vec<Candidate> = (0..40)
        .map(|i| node(&[i], &[i + 1], &[(i % 2 == 0).then_some(work), Some(work)]))
        .collect();
    let placed = place(&nodes, &[1 << 20; 41], &sites, Placement::Prefer).unwrap();
    assert_eq!(placed.at, [1; 40].map(BackendIndex));
    // Whole on the preferred device nothing crosses, and the user's order holds.
    let all: Vec<Candidate> = (0..40)
        .map(|i| node(&[i], &[i + 1], &[Some(1.0), Some(1.0)]))
        .collect();
    let placed = place(&all, &[64; 41], &sites, Placement::Prefer).unwrap();
    assert_eq!(placed.at, [0; 40].map(BackendIndex));
    let placed = place(&all, &[64; 41], &sites, Placement::Priced).unwrap();
    assert_eq!(placed.at, [1; 40].map(BackendIndex));
}

#[test]
fn a_crossing_between_layouts_is_priced_with_a_transpose() {
    let mut sites = PerBackend::from_iter([site(Memory::Host, 2e10), site(Memory::Host, 1e10)]);
    // The first is twice as fast, and nothing is sent; every second node is not for it.
    let nodes: Vec<Candidate> = (0..4)
        .map(|i| node(&[i], &[i + 1], &[(i % 2 == 0).then_some(1e6), Some(1e6)]))
        .collect();
    let at = |sites: &_| place(&nodes, &[1 << 20; 5], sites, Placement::Priced);
    assert_eq!(at(&sites).unwrap().at, [0, 1, 0, 1].map(BackendIndex));
    sites[BackendIndex(0)].layout = DataLayout::ChannelsLast;
    assert_eq!(at(&sites).unwrap().at, [1; 4].map(BackendIndex));
}

/// Whatever the graph, a split placement is priced below every whole one.
#[test]
fn no_placement_is_dearer_than_one_backend() {
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut splits = 0;
    for _ in 0..300 {
        let count = 2 + next(30) as usize;
        let sites = PerBackend::from_iter([
            site(Memory::Device, 10f64.powi(9 + next(4) as i32)),
            site(Memory::Host, 1e10),
        ]);
        let bytes: Vec<usize> = (0..=count).map(|_| 1 << next(24)).collect();
        let nodes: Vec<Candidate> = (0..count)
            .map(|i| {
                let cost = 10f64.powi(3 + next(7) as i32);
                let reads = [next(i as u64 + 1) as usize, i];
                let device = (next(4) > 0).then_some(cost);
                node(&reads, &[i + 1], &[device, Some(cost)])
            })
            .collect();
        let model = CostModel::new(&nodes, &bytes, &sites);
        for placement in [Placement::Prefer, Placement::Priced] {
            let placed = place(&nodes, &bytes, &sites, placement).unwrap();
            let price = model.whole(&placed.at);
            let split = placed.at.iter().any(|&b| b != placed.at[0]);
            splits += usize::from(split);
            for b in sites.indices() {
                let whole = model.whole(&vec![b; count]);
                assert!(!split || price <= whole, "{price} > {whole} on {b}");
            }
        }
    }
    assert!(splits > 20, "{splits} of 600 were split at all");
}
