//! An image as a model wants it: u8 pixels to normalized f32, channels first, and back to pixels, by the crate `image`
//! for the file format alone. Everything is in memory.

use std::io::Cursor;

use castwise::prelude::*;
use image::{ImageFormat, Rgb, RgbImage};

/// Mean and standard deviation of the channels, as ImageNet's models use them.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A picture, through a PNG file as it would come.
    let drawn = RgbImage::from_fn(640, 480, |x, y| Rgb([(x / 3) as u8, (y / 2) as u8, (x ^ y) as u8]));
    let mut file = Cursor::new(Vec::new());
    drawn.write_to(&mut file, ImageFormat::Png)?;
    let picture = image::load_from_memory(file.get_ref())?.to_rgb8();
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let pixels = Tensor::from_vec(picture.into_raw(), [height, width, 3])?;

    // Any picture: its height and width are dims that the feeds tell.
    let p = Program::new(Rules::Torch);
    let x = p.data("pixels", DType::U8, [None, None, Some(3)]);
    let mean = p.constant(Tensor::from(MEAN));
    let deviation = p.constant(Tensor::from(DEVIATION));
    let normalized = (&x / 255.0 - &mean) / &deviation;
    let back = ((&normalized * &deviation + &mean) * 255.0).round().clamp(0, 255).cast(DType::U8);
    println!("{}", p.infer()?.explain());

    let out = Executor::new().run(&p, feeds! { "pixels" => &pixels }, [&normalized, &back])?;
    // Channels first is a view; nothing is copied until somebody wants it in a row.
    let input = out[0].permute(&[2, 0, 1])?;
    println!("{:?} for the model, from {} bytes of PNG", input.meta(), file.get_ref().len());

    let bytes = out[1].to_vec::<u8>()?;
    let restored = RgbImage::from_raw(width as u32, height as u32, bytes).ok_or("not the size of a picture")?;
    assert!(restored == drawn, "every pixel comes back");
    restored.write_to(&mut Cursor::new(Vec::new()), ImageFormat::Png)?;
    println!("{width} x {height} pixels came back as they were");
    Ok(())
}
