//! Image preprocessing for a model: u8 pixels to normalized f32 with channels first, and back to pixels.
//!
//! Run it: `cargo run --release --example image_normalize`

#![allow(clippy::print_stdout, reason = "an example prints")]

use castwise::prelude::*;

/// The mean and standard deviation of the channels that ImageNet models use.
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

fn main() -> castwise::Result<()> {
    // Three bytes per pixel, row by row, as `image::open(path)?.to_rgb8().into_raw()` of the crate `image` gives them.
    let (width, height) = (640, 480);
    let drawn: Vec<u8> = (0..width * height)
        .map(|i| (i % width, i / width))
        .flat_map(|(x, y)| [(x / 3) as u8, (y / 2) as u8, (x ^ y) as u8])
        .collect();
    let pixels = Tensor::from_slice(&drawn, [height, width, 3])?;

    // The height and the width are dynamic dims, which the feeds determine.
    let p = Program::new(Rules::Torch);
    let x = p.data("pixels", DType::U8, [None, None, Some(3)]);
    let mean = p.constant(Tensor::from(MEAN));
    let deviation = p.constant(Tensor::from(DEVIATION));
    let normalized = (&x / 255.0 - &mean) / &deviation;
    let back = ((&normalized * &deviation + &mean) * 255.0).round().clamp(0, 255).cast(DType::U8);
    println!("{}", p.infer()?.explain());

    let out = Executor::new().run(&p, feeds! { "pixels" => &pixels }, [&normalized, &back])?;
    // Channels first is a view; nothing is copied unless a contiguous tensor is requested.
    let input = out[0].permute(&[2, 0, 1])?;
    println!("{:?} for the model", input.meta());

    assert!(out[1].as_slice::<u8>()? == drawn, "every pixel comes back");
    println!("{width} x {height} pixels came back as they were");
    Ok(())
}
