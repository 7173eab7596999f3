//! The dimensions of an image, read from its header.

use caliban_model::ImageMime;

/// Width and height in pixels; none where the header does not hold them as it should.
pub(super) fn dimensions(mime: ImageMime, bytes: &[u8]) -> Option<(u32, u32)> {
    match mime {
        ImageMime::Png => Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?)),
        ImageMime::Gif => Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?)),
        ImageMime::Jpeg => jpeg(bytes),
        ImageMime::Webp => webp(bytes),
    }
}

/// Goes from segment to segment until one that starts a frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        match marker {
            // Fill bytes may stand before a marker.
            0xff => at += 1,
            // Three markers of this range are tables, not frames.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            _ => at += 2 + big(bytes, at + 2, 2)? as usize,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((
            little(bytes, 26, 2)? & 0x3fff,
            little(bytes, 28, 2)? & 0x3fff,
        )),
        b"VP8L" => {
            let packed = little(bytes, 21, 4)?;
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

/// A number of up to four bytes, most significant first.
fn big(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at + length)?.iter();
    Some(digits.fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The same, least significant first.
fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at + length)?.iter().rev();
    Some(digits.fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_the_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0";
        assert_eq!(dimensions(ImageMime::Png, png), Some((640, 480)));
        assert_eq!(
            dimensions(ImageMime::Gif, b"GIF89a\x80\x02\xe0\x01"),
            Some((640, 480))
        );
        let jpeg =
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x02\xff\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03";
        assert_eq!(dimensions(ImageMime::Jpeg, jpeg), Some((640, 480)));
        let lossy = b"RIFF....WEBPVP8 ....\x10\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        assert_eq!(dimensions(ImageMime::Webp, lossy), Some((640, 480)));
        let packed: u32 = 639 + (479 << 14);
        let lossless = [b"RIFF....WEBPVP8L....\x2f", packed.to_le_bytes().as_slice()].concat();
        assert_eq!(dimensions(ImageMime::Webp, &lossless), Some((640, 480)));
        let extended = b"RIFF....WEBPVP8X....\x10\0\0\0\x7f\x02\0\xdf\x01\0";
        assert_eq!(dimensions(ImageMime::Webp, extended), Some((640, 480)));
    }

    #[test]
    fn broken_headers_tell_nothing() {
        for mime in [
            ImageMime::Png,
            ImageMime::Gif,
            ImageMime::Jpeg,
            ImageMime::Webp,
        ] {
            assert_eq!(dimensions(mime, b"\xff\xd8"), None);
        }
        assert_eq!(dimensions(ImageMime::Jpeg, b"\xff\xd8junk"), None);
        assert_eq!(dimensions(ImageMime::Jpeg, &[0xff; 100]), None);
    }
}
