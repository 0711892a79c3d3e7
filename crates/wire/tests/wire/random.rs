//! Numbers that come out the same for the same seed (xorshift64*).

pub struct Random(u64);

impl Random {
    /// `PGHERD_TEST_SEED` in place of `seed` where it is set; what is used is printed (a failing test shows it).
    pub fn new(seed: u64) -> Self {
        let seed = std::env::var("PGHERD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed);
        println!("seed {seed} (set PGHERD_TEST_SEED to use another)");
        Self(seed.max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to `below`, without it.
    pub fn below(&mut self, below: usize) -> usize {
        (self.next() >> 33) as usize % below
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
