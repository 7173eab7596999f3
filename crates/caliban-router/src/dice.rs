//! Chance that comes from a seed, and is the same in every version of the program.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// The generator `SplitMix64`: small, and good enough for pauses and rehearsals. Nothing secret is made of it.
#[derive(Debug, Clone)]
pub struct Dice(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The dice of one among many: by a name, so that another one more or less changes nothing.
    pub fn named(seed: u64, name: &str) -> Self {
        let mut dice = Self(seed);
        for byte in name.bytes() {
            dice.0 ^= u64::from(byte);
            dice.roll();
        }
        dice
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0 and less than 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits are what a float has room for"
    )]
    pub fn part(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Time between events that come by chance, this long on average.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.part()).ln()
    }

    /// A value around 0, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }
}

/// Dice that several calls throw.
#[derive(Debug)]
pub(crate) struct SharedDice(Mutex<Dice>);

impl SharedDice {
    pub(crate) fn new(dice: Dice) -> Self {
        Self(Mutex::new(dice))
    }

    /// Dice that nobody can foretell.
    pub(crate) fn unforeseen() -> Self {
        Self::new(Dice::new(RandomState::new().build_hasher().finish()))
    }

    pub(crate) fn part(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).part()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_its_numbers_for_ever() {
        let mut dice = Dice::new(42);
        let first: Vec<u64> = (0..3).map(|_| dice.roll()).collect();
        assert_eq!(
            first,
            [
                13_679_457_532_755_275_413,
                2_949_826_092_126_892_291,
                5_139_283_748_462_763_858
            ]
        );
        let mut named = Dice::named(42, "a");
        assert_ne!(named.roll(), first[0]);
    }

    #[test]
    fn averages_are_as_asked() {
        let mut dice = Dice::new(7);
        let rounds = 20_000;
        let mean = (0..rounds).map(|_| dice.exponential(30.0)).sum::<f64>() / f64::from(rounds);
        assert!((mean - 30.0).abs() < 1.0, "{mean}");
        let mean = (0..rounds).map(|_| dice.normal()).sum::<f64>() / f64::from(rounds);
        assert!(mean.abs() < 0.05, "{mean}");
    }
}
