use image::{Rgb, RgbImage, Rgba, RgbaImage};

use super::*;
use proptest::prelude::*;

const SMALL: Limits = Limits {
    max_bytes: 20_000,
    longest_edge: 100,
};

fn file(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn plain(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_pixel(width, height, Rgb([200, 30, 30])).into()
}

/// Pixels that no encoder makes small.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 7_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, blue, green, red] = state.to_le_bytes();
        Rgb([red, green, blue])
    })
    .into()
}

fn bytes(image: &Image) -> Vec<u8> {
    match &image.source {
        ImageSource::Base64 { data } => STANDARD.decode(data.as_bytes()).unwrap(),
        ImageSource::Url { url } => panic!("{url}"),
    }
}

#[test]
fn what_fits_goes_in_as_it_is() {
    for format in [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Gif,
        ImageFormat::WebP,
    ] {
        let original = file(&plain(100, 40), format);
        let ingested = ingest(&original, SMALL).unwrap();
        assert_eq!(ingested.scaling, Scaling::Kept);
        assert_eq!(ingested.image.dims, Some((100, 40)));
        assert_eq!(bytes(&ingested.image), original, "{format:?}");
    }
}

#[test]
fn a_long_edge_is_made_shorter_and_proportions_stay() {
    for (format, mime) in [
        (ImageFormat::Png, ImageMime::Png),
        (ImageFormat::Jpeg, ImageMime::Jpeg),
        (ImageFormat::Gif, ImageMime::Png),
        (ImageFormat::WebP, ImageMime::Png),
    ] {
        let ingested = ingest(&file(&plain(50, 200), format), SMALL).unwrap();
        let from = (50, 200);
        assert_eq!(ingested.scaling, Scaling::Downscaled { from });
        assert_eq!(ingested.image.mime, mime);
        let seen = image::load_from_memory(&bytes(&ingested.image)).unwrap();
        assert_eq!((seen.width(), seen.height()), (25, 100));
        assert_eq!(ingested.image.dims, Some((25, 100)));
        assert_eq!(ImageMime::sniff(&bytes(&ingested.image)), Some(mime));
    }
}

#[test]
fn what_is_heavy_is_made_smaller_until_it_fits() {
    let heavy = file(&noise(100, 100), ImageFormat::Png);
    assert!(heavy.len() as u64 > SMALL.max_bytes);
    let ingested = ingest(&heavy, SMALL).unwrap();
    assert_eq!(ingested.image.dims, Some((50, 50)));
    assert!(bytes(&ingested.image).len() as u64 <= SMALL.max_bytes);
    let none = Limits {
        max_bytes: 10,
        ..SMALL
    };
    let refused = ingest(&heavy, none);
    assert_eq!(refused, Err(ImageError::TooLarge { max_bytes: 10 }));
}

#[test]
fn transparent_parts_survive() {
    let glass = RgbaImage::from_pixel(200, 200, Rgba([9, 9, 9, 0]));
    let ingested = ingest(&file(&glass.into(), ImageFormat::Png), SMALL).unwrap();
    let seen = image::load_from_memory(&bytes(&ingested.image)).unwrap();
    assert_eq!(seen.to_rgba8().get_pixel(3, 3).0[3], 0);
}

#[test]
fn the_bytes_say_what_it_is_and_damage_is_found() {
    assert_eq!(ingest(b"GIF, or so I say", SMALL), Err(ImageError::Type));
    assert_eq!(ingest(b"BM\x00\x00", SMALL), Err(ImageError::Type));
    let whole = file(&noise(60, 60), ImageFormat::Png);
    for cut in [9, 40, whole.len() / 2] {
        let refused = ingest(&whole[..cut], SMALL);
        assert!(matches!(refused, Err(ImageError::Damaged(_))), "{cut}");
    }
}

#[test]
fn an_image_that_claims_to_be_enormous_is_not_decoded() {
    let mut bomb = file(&plain(1, 1), ImageFormat::Gif);
    bomb[6..10].copy_from_slice(&[0xff; 4]);
    // It may be whole: it is not called damaged.
    assert_eq!(ingest(&bomb, SMALL), Err(ImageError::TooManyPixels));
}

const FORMATS: [ImageFormat; 4] = [
    ImageFormat::Png,
    ImageFormat::Jpeg,
    ImageFormat::Gif,
    ImageFormat::WebP,
];

/// A picture that is many times larger than its file, at the edge of what is decoded.
#[test]
fn what_unpacks_to_far_more_than_its_file_is_bounded() {
    let bomb = file(&plain(MAX_EDGE, 512), ImageFormat::Png);
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let ingested = ingest(&bomb, SMALL).unwrap();
    assert!(bytes(&ingested.image).len() as u64 <= SMALL.max_bytes);
    // The same file that claims to be larger yet.
    let mut larger = bomb.clone();
    larger[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(matches!(
        ingest(&larger, SMALL),
        Err(ImageError::Damaged(_) | ImageError::TooManyPixels)
    ));
}

#[test]
fn the_beginning_alone_makes_no_image() {
    let heads: [&[u8]; 6] = [
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"GIF89a",
        b"RIFF\xff\xff\xff\xffWEBPVP8 ",
        b"RIFF\x00\x00\x00\x00WEBPVP8X",
        b"",
    ];
    for head in heads {
        for rest in [0, 1, 64, 4096] {
            let mut bytes = head.to_vec();
            bytes.resize(head.len() + rest, 0xff);
            assert!(ingest(&bytes, SMALL).is_err(), "{head:?} {rest}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever was done to a file, what comes of it is refused or fits.
    #[test]
    fn damage_is_refused_or_harmless(
        which in 0usize..4,
        spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut damaged = file(&noise(24, 16), FORMATS[which]);
        for (spot, byte) in spots {
            let at = spot.index(damaged.len());
            damaged[at] = byte;
        }
        damaged.truncate(cut.index(damaged.len()) + 1);
        if let Ok(ingested) = ingest(&damaged, SMALL) {
            let sent = bytes(&ingested.image);
            prop_assert!(sent.len() as u64 <= SMALL.max_bytes);
            prop_assert_eq!(ImageMime::sniff(&sent), Some(ingested.image.mime));
        }
    }
}

/// Many times larger than wanted, it is first brought near by what costs little, and keeps its
/// proportions and its colours.
#[test]
fn a_much_larger_picture_keeps_its_looks() {
    let mut large = image::RgbImage::from_pixel(4000, 1000, image::Rgb([200, 10, 10]));
    for (_, _, pixel) in large.enumerate_pixels_mut().filter(|(x, _, _)| *x >= 2000) {
        *pixel = image::Rgb([10, 10, 200]);
    }
    let ingested = ingest(&file(&large.into(), ImageFormat::Png), SMALL).unwrap();
    let seen = image::load_from_memory(&bytes(&ingested.image))
        .unwrap()
        .to_rgb8();
    assert_eq!(seen.width(), 4 * seen.height());
    assert_eq!(ingested.scaling, Scaling::Downscaled { from: (4000, 1000) });
    assert_eq!(seen.get_pixel(1, 1).0, [200, 10, 10]);
    assert_eq!(seen.get_pixel(seen.width() - 2, 1).0, [10, 10, 200]);
}

/// A photograph whose camera was held upright: the sensor's rows are columns of the picture.
fn held_upright(picture: &DynamicImage) -> Vec<u8> {
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
    // One entry: the orientation, a short number, which is 6.
    exif.extend([1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]);
    let mut segment = vec![0xff, 0xe1];
    segment.extend(u16::try_from(exif.len() + 2).unwrap().to_be_bytes());
    segment.extend(exif);
    let mut bytes = file(picture, ImageFormat::Jpeg);
    bytes.splice(2..2, segment);
    bytes
}

#[test]
fn a_photograph_that_is_made_smaller_stays_upright() {
    let sensor = RgbImage::from_fn(400, 200, |x, _| {
        Rgb(if x < 200 { [250, 0, 0] } else { [0, 0, 250] })
    });
    let photograph = held_upright(&sensor.into());
    let ingested = ingest(&photograph, SMALL).unwrap();
    assert_eq!(ingested.image.dims, Some((50, 100)));
    let from = (200, 400);
    assert_eq!(ingested.scaling, Scaling::Downscaled { from });
    let shown = image::load_from_memory(&bytes(&ingested.image))
        .unwrap()
        .to_rgb8();
    let (top, bottom) = (shown.get_pixel(25, 10).0, shown.get_pixel(25, 90).0);
    assert!(top[0] > 200 && top[2] < 60, "{top:?}");
    assert!(bottom[2] > 200 && bottom[0] < 60, "{bottom:?}");
    let small = thumbnail(&ingested.image, (10, 10)).unwrap();
    assert_eq!((small.width, small.height), (5, 10));
    let limits = Limits {
        longest_edge: 400,
        ..SMALL
    };
    let kept = ingest(&photograph, limits).unwrap();
    assert_eq!(bytes(&kept.image), photograph);
    let small = thumbnail(&kept.image, (10, 10)).unwrap();
    assert_eq!((small.width, small.height), (5, 10));
}
