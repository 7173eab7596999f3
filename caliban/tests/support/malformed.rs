//! Files that claim to be images and are none, or unpack to more than anybody can hold. Each is
//! refused, by whatever way it comes.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::{ImageFormat, RgbImage};

const MEBIBYTE: usize = 1024 * 1024;

/// A part of a PNG, by its name.
type Chunk = (&'static [u8; 4], Vec<u8>);

/// They all, by names that say what they claim to be.
pub(crate) fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let png = whole(ImageFormat::Png);
    let mut vast_gif = whole(ImageFormat::Gif);
    vast_gif[6..10].copy_from_slice(&[0xff; 4]);
    // The size stands in the first chunk of a PNG, which has a checksum of its own.
    let mut wrong_sum = png.clone();
    wrong_sum[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let mut cut_jpeg = vec![0xff, 0xd8, 0xff, 0xe0, 0, 16];
    cut_jpeg.extend(b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    // A frame of 65535 by 65535 dots in three colours, of which nothing follows.
    let mut vast_jpeg = cut_jpeg.clone();
    vast_jpeg.extend([0xff, 0xc0, 0, 17, 8, 0xff, 0xff, 0xff, 0xff, 3]);
    vast_jpeg.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 0xff, 0xd9]);
    let mut false_webp = b"RIFF\xff\xff\xff\x7fWEBPVP8 \xff\xff\xff\x7f".to_vec();
    false_webp.extend([0; 64]);
    // Fourteen bits for each side, all of them set.
    let mut vast_webp = b"RIFF\x1e\0\0\0WEBPVP8L\x12\0\0\0\x2f\xff\xff\xff\x0f".to_vec();
    vast_webp.extend([0; 13]);
    vec![
        ("cut.png", png[..60].to_vec()),
        ("head.png", png[..8].to_vec()),
        ("wrong-sum.png", wrong_sum),
        // Two gigabytes of colours, and one line that is longer than any screen.
        ("bomb.png", made_png(16_384, 16_384, (16, 6))),
        ("long.png", made_png(0x7fff_ffff, 1, (1, 0))),
        ("no-size.png", made_png(0, 0, (8, 2))),
        ("vast.gif", vast_gif),
        ("cut.jpg", cut_jpeg),
        ("vast.jpg", vast_jpeg),
        ("false.webp", false_webp),
        ("vast.webp", vast_webp),
        ("text.png", b"just words, and quite a few of them".to_vec()),
        ("zeros.gif", vec![0; 4096]),
        ("page.png", b"<svg onload=\"alert(1)\"/>".to_vec()),
    ]
}

/// A picture of one dot with far more data than it needs.
pub(crate) fn stuffed_with_data() -> Vec<u8> {
    stuffed(Vec::new(), packed(640 * MEBIBYTE))
}

/// The same with a profile that unpacks to as much.
pub(crate) fn stuffed_with_a_profile() -> Vec<u8> {
    let mut profile = b"profile\0\0".to_vec();
    profile.extend(packed(640 * MEBIBYTE));
    stuffed(vec![(b"iCCP", profile)], packed(MEBIBYTE))
}

fn stuffed(mut chunks: Vec<Chunk>, data: Vec<u8>) -> Vec<u8> {
    chunks.insert(0, (b"IHDR", header(1, 1, (8, 2))));
    chunks.extend([(b"IDAT", data), (b"IEND", Vec::new())]);
    png_of(&chunks)
}

fn whole(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::new(30, 20).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A PNG of this size whose checksums are right, with a little data.
fn made_png(width: u32, height: u32, colours: (u8, u8)) -> Vec<u8> {
    png_of(&[
        (b"IHDR", header(width, height, colours)),
        (b"IDAT", packed(MEBIBYTE)),
        (b"IEND", Vec::new()),
    ])
}

/// The first chunk; the colours are bits of each, and their kind.
fn header(width: u32, height: u32, (bits, kind): (u8, u8)) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([bits, kind, 0, 0, 0]);
    header
}

fn png_of(chunks: &[Chunk]) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in chunks {
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        let chunk = [&kind[..], data].concat();
        bytes.extend(&chunk);
        bytes.extend(crc32fast::hash(&chunk).to_be_bytes());
    }
    bytes
}

fn packed(length: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; MEBIBYTE];
    for _ in 0..length / zeros.len() {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}
