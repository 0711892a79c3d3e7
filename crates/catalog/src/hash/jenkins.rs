//! Bob Jenkins's lookup3 with a 64-bit seed, as PostgreSQL uses it: src/common/hashfn.c (`hash_bytes_extended`,
//! `hash_bytes_uint32_extended`), on a little-endian machine.

struct State {
    a: u32,
    b: u32,
    c: u32,
}

impl State {
    fn new(length: u32, seed: u64) -> State {
        let start = 0x9e37_79b9_u32.wrapping_add(length).wrapping_add(3_923_095);
        let mut state = State { a: start, b: start, c: start };
        if seed != 0 {
            state.add((seed >> 32) as u32, seed as u32, 0);
            state.mix();
        }
        state
    }

    fn add(&mut self, a: u32, b: u32, c: u32) {
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    fn mix(&mut self) {
        let State { mut a, mut b, mut c } = *self;
        let step = |x: &mut u32, y: &mut u32, z: u32, bits: u32| {
            *x = x.wrapping_sub(*y) ^ y.rotate_left(bits);
            *y = y.wrapping_add(z);
        };
        step(&mut a, &mut c, b, 4);
        step(&mut b, &mut a, c, 6);
        step(&mut c, &mut b, a, 8);
        step(&mut a, &mut c, b, 16);
        step(&mut b, &mut a, c, 19);
        step(&mut c, &mut b, a, 4);
        *self = State { a, b, c };
    }

    fn finish(self) -> u64 {
        let State { mut a, mut b, mut c } = self;
        let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
        step(&mut c, b, 14);
        step(&mut a, c, 11);
        step(&mut b, a, 25);
        step(&mut c, b, 16);
        step(&mut a, c, 4);
        step(&mut b, a, 14);
        step(&mut c, b, 24);
        (u64::from(b) << 32) | u64::from(c)
    }
}

/// `hash_any_extended`.
pub(super) fn hash_bytes(bytes: &[u8], seed: u64) -> u64 {
    let mut state = State::new(bytes.len() as u32, seed);
    let (blocks, tail) = bytes.as_chunks::<12>();
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        state.add(u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]), u32::from_le_bytes(words[2]));
        state.mix();
    }
    // The lowest byte of c is kept for the length, so the tail is laid out with a gap of one byte there.
    let mut rest = [0u8; 12];
    for (i, byte) in tail.iter().enumerate() {
        rest[if i < 8 { i } else { i + 1 }] = *byte;
    }
    let (words, _) = rest.as_chunks::<4>();
    state.add(u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]), u32::from_le_bytes(words[2]));
    state.finish()
}

/// `hash_uint32_extended`: what [`hash_bytes`] gives for the four bytes.
pub(super) fn hash_u32(value: u32, seed: u64) -> u64 {
    let mut state = State::new(4, seed);
    state.add(value, 0, 0);
    state.finish()
}

/// `hashint8extended`: equal to the hash of a narrower integer of the same value.
pub(super) fn hash_i64(value: i64, seed: u64) -> u64 {
    let low = value as u32;
    let high = (value >> 32) as u32;
    hash_u32(low ^ if value >= 0 { high } else { !high }, seed)
}
