//! Takes images in: their bytes say what they are, they are decoded to see that they are whole,
//! and those that are too large are made smaller. Decoders see what strangers made, so they are
//! used nowhere else and within stated bounds.

use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use caliban_model::{Image, ImageMime, ImageSource};
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader};

/// The most images of one message.
pub const MAX_IMAGES: usize = 20;
/// The largest file that is read in order to make a smaller image of it.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;
/// The most pixels that are decoded at all, and the longest edge: as many as cameras make. A small
/// file can hold more, and would cost minutes.
const MAX_PIXELS: u64 = 50_000_000;
const MAX_EDGE: u32 = 16_384;
/// The most memory a decoder may take for one image.
const MAX_DECODED: u64 = 256 * 1024 * 1024;
/// How many times larger than wanted a picture is left for the filter that looks best; what is
/// larger yet is brought there by one that costs little.
const FINE: u32 = 2;
/// Where a picture that is still too large is made smaller yet; the last is its final chance.
const SHRINKING: [u32; 4] = [1, 2, 4, 8];
/// Hard to tell from the original, at a fifth of its size.
const JPEG_QUALITY: u8 = 85;

/// How large an image may be when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Before encoding as text.
    pub max_bytes: u64,
    /// In pixels.
    pub longest_edge: u32,
}

impl Limits {
    pub const DEFAULT: Self = Self {
        max_bytes: 5 * 1024 * 1024,
        longest_edge: 1568,
    };
}

/// What became of the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scaling {
    /// It has as many as before.
    Kept,
    /// It had this many pixels before.
    Downscaled { from: (u32, u32) },
}

/// An image that a message can carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingested {
    pub image: Image,
    pub scaling: Scaling,
}

/// Why an image cannot be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error("is not a png, jpeg, gif or webp image")]
    Type,
    #[error("is not encoded as base64")]
    Encoding,
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error(
        "has too many pixels; make it smaller, {MAX_PIXELS} pixels and {MAX_EDGE} along an edge are the limit"
    )]
    TooManyPixels,
    #[error("stays larger than {max_bytes} bytes however small it is made; raise `max_bytes`")]
    TooLarge { max_bytes: u64 },
}

/// Takes in an image that a message carries already. One that only has an address is left to the
/// provider, which fetches it.
pub fn ingest_again(image: Image, limits: Limits) -> Result<Ingested, ImageError> {
    let data = match &image.source {
        ImageSource::Base64 { data } => Arc::clone(data),
        ImageSource::Url { .. } => {
            return Ok(Ingested {
                image,
                scaling: Scaling::Kept,
            });
        }
    };
    // Four letters are three bytes.
    if data.len() as u64 / 4 * 3 > MAX_FILE {
        return Err(ImageError::TooLarge {
            max_bytes: MAX_FILE,
        });
    }
    let bytes = STANDARD.decode(data.as_bytes());
    ingest(&bytes.map_err(|_| ImageError::Encoding)?, limits)
}

/// Takes an image in.
pub fn ingest(bytes: &[u8], limits: Limits) -> Result<Ingested, ImageError> {
    let mime = ImageMime::sniff(bytes).ok_or(ImageError::Type)?;
    let Picture {
        pixels: picture,
        orientation,
    } = decode(mime, bytes)?;
    let (width, height) = (picture.width(), picture.height());
    let is_small = bytes.len() as u64 <= limits.max_bytes;
    if is_small && width.max(height) <= limits.longest_edge {
        return Ok(Ingested {
            image: carried(mime, bytes, (width, height)),
            scaling: Scaling::Kept,
        });
    }
    let first = width.max(height).min(limits.longest_edge);
    let mut picture = reduced(picture, (first, first));
    // What is written anew does not say any more how it is to be turned.
    picture.apply_orientation(orientation);
    let (width, height) = upright((width, height), orientation);
    for divisor in SHRINKING {
        let edge = (first / divisor).max(1);
        // Only what is too large is scaled; heavy pictures may just need another encoding.
        let scaled = if edge < picture.width().max(picture.height()) {
            picture.resize(edge, edge, FilterType::Lanczos3)
        } else {
            picture.clone()
        };
        let (mime, encoded) = encode(mime, &scaled)?;
        if encoded.len() as u64 <= limits.max_bytes {
            let dims = (scaled.width(), scaled.height());
            return Ok(Ingested {
                image: carried(mime, &encoded, dims),
                scaling: if dims == (width, height) {
                    Scaling::Kept
                } else {
                    let from = (width, height);
                    Scaling::Downscaled { from }
                },
            });
        }
    }
    Err(ImageError::TooLarge {
        max_bytes: limits.max_bytes,
    })
}

/// An image as a screen shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thumbnail {
    pub width: u32,
    pub height: u32,
    /// Four bytes for each pixel, from the top left.
    pub rgba: Vec<u8>,
    pub png: Vec<u8>,
}

/// An image in at most so many pixels, in its own proportions and never larger than it is.
pub fn thumbnail(image: &Image, (width, height): (u32, u32)) -> Result<Thumbnail, ImageError> {
    let data = match &image.source {
        ImageSource::Base64 { data } if data.len() as u64 / 4 * 3 <= MAX_FILE => data,
        ImageSource::Base64 { .. } => {
            return Err(ImageError::TooLarge {
                max_bytes: MAX_FILE,
            });
        }
        // Nothing is fetched to be looked at.
        ImageSource::Url { .. } => return Err(ImageError::Type),
    };
    let bytes = STANDARD.decode(data.as_bytes());
    let bytes = bytes.map_err(|_| ImageError::Encoding)?;
    let mime = ImageMime::sniff(&bytes).ok_or(ImageError::Type)?;
    let Picture {
        pixels,
        orientation,
    } = decode(mime, &bytes)?;
    let (width, height) = (width.max(1), height.max(1));
    let mut picture = reduced(pixels, upright((width, height), orientation));
    picture.apply_orientation(orientation);
    let picture = if picture.width() > width || picture.height() > height {
        picture.resize(width, height, FilterType::Triangle)
    } else {
        picture
    };
    let rgba = picture.to_rgba8();
    let mut png = Cursor::new(Vec::new());
    rgba.write_to(&mut png, ImageFormat::Png)
        .map_err(|error| ImageError::Damaged(error.to_string()))?;
    Ok(Thumbnail {
        width: rgba.width(),
        height: rgba.height(),
        rgba: rgba.into_raw(),
        png: png.into_inner(),
    })
}

/// A picture as it is stored, and how it is to be turned to be seen.
#[derive(Debug)]
struct Picture {
    pixels: DynamicImage,
    orientation: Orientation,
}

/// A size as it is after the turn.
fn upright((width, height): (u32, u32), orientation: Orientation) -> (u32, u32) {
    match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
        Orientation::NoTransforms
        | Orientation::Rotate180
        | Orientation::FlipHorizontal
        | Orientation::FlipVertical => (width, height),
    }
}

fn decode(mime: ImageMime, bytes: &[u8]) -> Result<Picture, ImageError> {
    let format = match mime {
        ImageMime::Png => ImageFormat::Png,
        ImageMime::Jpeg => ImageFormat::Jpeg,
        ImageMime::Gif => ImageFormat::Gif,
        ImageMime::Webp => ImageFormat::WebP,
    };
    let mut bounds = image::Limits::default();
    bounds.max_alloc = Some(MAX_DECODED);
    bounds.max_image_width = Some(MAX_EDGE);
    bounds.max_image_height = Some(MAX_EDGE);
    // Of what a decoder leaves behind when it breaks nothing is used again.
    let decoded = panic::catch_unwind(AssertUnwindSafe(move || {
        let (width, height) =
            ImageReader::with_format(Cursor::new(bytes), format).into_dimensions()?;
        if u64::from(width).saturating_mul(u64::from(height)) > MAX_PIXELS {
            return Ok(None);
        }
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        reader.limits(bounds.clone());
        let mut decoder = reader.into_decoder()?;
        // What says nothing sensible of it is taken as it is.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        bounds.reserve(decoder.total_bytes())?;
        decoder.set_limits(bounds)?;
        let pixels = DynamicImage::from_decoder(decoder)?;
        Ok(Some(Picture {
            pixels,
            orientation,
        }))
    }));
    match decoded {
        Ok(Ok(Some(picture))) => Ok(picture),
        Ok(Ok(None) | Err(image::ImageError::Limits(_))) => Err(ImageError::TooManyPixels),
        Ok(Err(error)) => Err(ImageError::Damaged(error.to_string())),
        Err(_) => Err(ImageError::Damaged("its decoder breaks on it".to_owned())),
    }
}

/// Brings a picture near a size that is much smaller, by averages of whole pixels.
fn reduced(picture: DynamicImage, (width, height): (u32, u32)) -> DynamicImage {
    let (width, height) = (width.saturating_mul(FINE), height.saturating_mul(FINE));
    if picture.width() / 2 > width || picture.height() / 2 > height {
        picture.thumbnail(width, height)
    } else {
        picture
    }
}

/// A photograph stays one; everything else is kept without loss.
fn encode(mime: ImageMime, picture: &DynamicImage) -> Result<(ImageMime, Vec<u8>), ImageError> {
    let mut file = Cursor::new(Vec::new());
    let (mime, written) = match mime {
        ImageMime::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY);
            let written = picture.to_rgb8().write_with_encoder(encoder);
            (ImageMime::Jpeg, written)
        }
        ImageMime::Png | ImageMime::Gif | ImageMime::Webp => {
            let written = picture.write_to(&mut file, ImageFormat::Png);
            (ImageMime::Png, written)
        }
    };
    written.map_err(|error| ImageError::Damaged(error.to_string()))?;
    Ok((mime, file.into_inner()))
}

fn carried(mime: ImageMime, bytes: &[u8], dims: (u32, u32)) -> Image {
    Image {
        mime,
        source: ImageSource::Base64 {
            data: Arc::from(STANDARD.encode(bytes)),
        },
        dims: Some(dims),
    }
}

#[cfg(test)]
mod tests;
