use super::*;

fn sampling(change: impl FnOnce(&mut Sampling)) -> Sampling {
    let mut sampling = Sampling {
        temperature: 1.0,
        ..Sampling::default()
    };
    change(&mut sampling);
    sampling
}

/// How often each word is drawn, and the probability that it must have.
fn assert_drawn(scores: &[f64], sampling: Sampling, expected: &[f64]) {
    let runs = 40_000;
    let mut sampler = Sampler::new(sampling).expect("a sampling");
    let mut counts = vec![0u32; scores.len()];
    for _ in 0..runs {
        sampler.seen.clear();
        let word = sampler.pick(&mut scores.to_vec()).expect("a word");
        counts[word as usize] += 1;
    }
    for (word, (&count, &p)) in counts.iter().zip(expected).enumerate() {
        let deviation = (p * (1.0 - p) / f64::from(runs)).sqrt();
        let found = f64::from(count) / f64::from(runs);
        assert!(
            (found - p).abs() <= 4.5 * deviation,
            "word {word}: {found} instead of {p}"
        );
    }
}

/// Probabilities of some words, in the order of all.
fn softmax(scores: &[f64], temperature: f64, kept: &[usize]) -> Vec<f64> {
    let weight = |i: usize| (scores[i] / temperature).exp();
    let sum: f64 = kept.iter().map(|&i| weight(i)).sum();
    let chance = |i| match kept.contains(&i) {
        true => weight(i) / sum,
        false => 0.0,
    };
    (0..scores.len()).map(chance).collect()
}

const SCORES: [f64; 5] = [0.5, 2.0, -1.0, 1.5, 0.0];

#[test]
fn words_are_drawn_by_their_probability() {
    let all = [0, 1, 2, 3, 4];
    assert_drawn(&SCORES, sampling(|_| {}), &softmax(&SCORES, 1.0, &all));
    let warm = sampling(|s| s.temperature = 2.5);
    assert_drawn(&SCORES, warm, &softmax(&SCORES, 2.5, &all));
}

#[test]
fn few_words_are_drawn_from() {
    let top_k = sampling(|s| s.top_k = 3);
    assert_drawn(&SCORES, top_k, &softmax(&SCORES, 1.0, &[0, 1, 3]));
    // The first two have 0.48 and 0.29 of the whole: the second passes 0.6, the third begins behind it.
    let top_p = sampling(|s| s.top_p = 0.6);
    assert_drawn(&SCORES, top_p, &softmax(&SCORES, 1.0, &[1, 3]));
    // Of the best word's probability, the others have 0.61, 0.22, 0.14 and 0.05.
    let min_p = sampling(|s| s.min_p = 0.2);
    assert_drawn(&SCORES, min_p, &softmax(&SCORES, 1.0, &[0, 1, 3]));
    // Of three words the first two have 0.55 and 0.33.
    let both = sampling(|s| (s.top_k, s.top_p) = (3, 0.5));
    assert_drawn(&SCORES, both, &softmax(&SCORES, 1.0, &[1]));
}

#[test]
fn the_best_word_is_the_first_of_equals() {
    let mut sampler = Sampler::new(Sampling::default()).expect("a sampling");
    let word = sampler
        .pick(&mut [f64::NAN, 1.0, 3.0, 3.0])
        .expect("a word");
    assert_eq!(word, 2);
    assert!(sampler.pick(&mut [f64::NAN, f64::NEG_INFINITY]).is_err());
}

#[test]
fn penalties_count_what_was_seen() {
    let all = Sampling {
        repetition_penalty: 2.0,
        frequency_penalty: 0.25,
        presence_penalty: 0.5,
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(all).expect("a sampling");
    sampler.prompt(&[0, 2]);
    for word in [1, 1] {
        let mut only = [f64::NEG_INFINITY; 4];
        only[word] = 1e9;
        assert_eq!(sampler.pick(&mut only).expect("a word"), word as u32);
    }
    let mut scores = [4.0, 4.0, -4.0, 4.0];
    sampler.penalise(&mut scores);
    assert_eq!(scores, [2.0, 2.0 - 2.0 * 0.25 - 0.5, -8.0, 4.0]);
}

#[test]
fn a_seed_gives_the_same_words_everywhere() {
    let words = |seed| {
        let mut sampler = Sampler::new(sampling(|s| s.seed = seed)).expect("a sampling");
        let picks = (0..12).map(|_| sampler.pick(&mut SCORES.to_vec()).expect("a word"));
        picks.collect::<Vec<_>>()
    };
    assert_eq!(words(7), SEVEN);
    assert_ne!(words(8), SEVEN);
}

const SEVEN: [u32; 12] = [1, 1, 3, 3, 1, 1, 0, 3, 1, 4, 1, 1];

#[test]
fn numbers_out_of_range_are_refused() {
    let wrong: [fn(&mut Sampling); 6] = [
        |s| s.temperature = -1.0,
        |s| s.temperature = f64::NAN,
        |s| s.top_p = 0.0,
        |s| s.top_p = 1.5,
        |s| s.min_p = -0.1,
        |s| s.repetition_penalty = 0.0,
    ];
    for change in wrong {
        let error = sampling(change).check().expect_err("an error");
        assert_eq!(error.code(), ErrorCode::InvalidValue);
    }
}
