//! The fuzz targets without a fuzzer: seeds with random changes, which are the same every time.

use std::path::Path;

#[path = "../fuzz/src/lib.rs"]
mod targets;

const ITERATIONS: usize = 6_000;

/// xorshift64*: all that is needed here.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

fn read_seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// One of the changes that find the most: a byte replaced, a piece removed, a piece doubled, a piece of another seed.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const TELLING: &[u8] = b" \t\r\n\0\x1A0123456789.-+e@(),=_qdx\x7F\x80\xC3\xFF";
    let at = random.below(bytes.len() + 1);
    let length = random.below(8).min(bytes.len() - at);
    match random.below(6) {
        0 => bytes.insert(at, TELLING[random.below(TELLING.len())]),
        1 => bytes.insert(at, random.below(256) as u8),
        2 => drop(bytes.drain(at..at + length)),
        3 => bytes.extend_from_within(at..at + length),
        4 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            bytes.splice(at.., other[from..].iter().copied());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = TELLING[random.below(TELLING.len())];
            }
        }
    }
}

fn try_neighbours(name: &str, target: fn(&[u8])) {
    let seeds = read_seeds(name);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    seeds.iter().for_each(|seed| target(seed));
    for _ in 0..ITERATIONS {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            change(&mut bytes, &seeds, &mut random);
        }
        target(&bytes);
    }
}

#[test]
fn neighbours_of_runs() {
    try_neighbours("run", targets::run);
}

#[test]
fn neighbours_of_qrels() {
    try_neighbours("qrels", targets::qrels);
}

#[test]
fn neighbours_of_measure_names() {
    try_neighbours("measure_name", targets::measure_name);
}

#[test]
fn neighbours_of_texts() {
    try_neighbours("text", targets::text);
}
