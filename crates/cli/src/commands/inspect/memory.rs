//! The memory plan, as a table and as a picture: time runs to the right, one step a kernel; addresses
//! run upwards.

use std::fmt::Write;

use kilim::Report;
use kilim::core::report::{MemoryPlan, TensorRole};

use super::{bytes, table};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 16.0;
const TITLE: f64 = 24.0;
/// The height of what explains the drawing.
const LEGEND: f64 = 28.0;

/// Prints the size of every arena.
pub fn print(report: &Report) {
    let mut t = table(&[
        "\narena of",
        "\nstage",
        "\ntensors",
        "\nbytes",
        "\nat least",
        "\nunshared",
    ]);
    for plan in &report.memory {
        t.add_row([
            plan.backend.clone(),
            place(plan),
            plan.tensors.len().to_string(),
            bytes(plan.bytes),
            bytes(plan.lower_bound_bytes),
            bytes(plan.unshared_bytes),
        ]);
    }
    say!("{t}");
}

/// An SVG with one drawing for each plan, one below the other.
pub fn draw(plans: &[MemoryPlan]) -> String {
    let block = TITLE + HEIGHT + MARGIN;
    let (width, height) = (
        WIDTH + 2.0 * MARGIN,
        MARGIN + LEGEND + block * plans.len().max(1) as f64,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    if plans.is_empty() {
        svg.push_str("<text x=\"16\" y=\"32\">nothing is planned before the first run</text>\n");
    } else {
        draw_legend(&mut svg);
    }
    for (i, plan) in plans.iter().enumerate() {
        draw_plan(&mut svg, plan, MARGIN + LEGEND + block * i as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_legend(svg: &mut String) {
    let mut x = MARGIN;
    for (role, name) in [
        (TensorRole::Input, "input"),
        (TensorRole::Intermediate, "intermediate"),
        (TensorRole::Output, "output"),
    ] {
        let fill = colour(role);
        line(
            svg,
            format_args!(
                "<rect x=\"{x}\" y=\"{MARGIN}\" width=\"12\" height=\"12\" fill=\"{fill}\" \
                 fill-opacity=\"0.75\"/><text x=\"{}\" y=\"{}\">{name}</text>",
                x + 18.0,
                MARGIN + 11.0
            ),
        );
        x += 120.0;
    }
    line(
        svg,
        format_args!(
            "<text x=\"{x}\" y=\"{}\">kernels to the right, addresses upwards; dashed: the most \
             that is alive at any one step</text>",
            MARGIN + 11.0
        ),
    );
}

fn colour(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Input => "#3b6ea5",
        TensorRole::Output => "#b5483a",
        TensorRole::Intermediate => "#c9a227",
    }
}

fn draw_plan(svg: &mut String, plan: &MemoryPlan, top: f64) {
    let title = format!(
        "{} · {} · {} tensors in {}, at least {}",
        plan.backend,
        place(plan),
        plan.tensors.len(),
        bytes(plan.bytes),
        bytes(plan.lower_bound_bytes)
    );
    let across = WIDTH / plan.steps.max(1) as f64;
    let up = HEIGHT / plan.bytes.max(1) as f64;
    let bottom = top + TITLE + HEIGHT;
    line(
        svg,
        format_args!(
            "<text x=\"{MARGIN}\" y=\"{}\">{}</text>",
            top + 14.0,
            escape(&title)
        ),
    );
    line(
        svg,
        format_args!(
            "<rect x=\"{MARGIN}\" y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#f4f1ea\"/>",
            top + TITLE
        ),
    );
    for t in &plan.tensors {
        let fill = colour(t.role);
        let (width, height) = ((t.last + 1 - t.first) as f64 * across, t.bytes as f64 * up);
        let (x, y) = (
            MARGIN + t.first as f64 * across,
            bottom - t.offset as f64 * up - height,
        );
        line(
            svg,
            format_args!(
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
                 fill=\"{fill}\" fill-opacity=\"0.75\" stroke=\"#fff\" stroke-width=\"0.5\">\
                 <title>{}: {} at {}, steps {} to {}</title></rect>",
                escape(&t.name),
                bytes(t.bytes),
                t.offset,
                t.first,
                t.last
            ),
        );
    }
    let least = bottom - plan.lower_bound_bytes as f64 * up;
    line(
        svg,
        format_args!(
            "<path d=\"M{MARGIN} {least:.2}h{WIDTH}\" stroke=\"#222\" stroke-dasharray=\"4 4\"/>"
        ),
    );
}

fn place(plan: &MemoryPlan) -> String {
    match plan.scope.is_empty() {
        true => format!("stage {}", plan.stage),
        false => format!("{}, stage {}", plan.scope.join("/"), plan.stage),
    }
}

fn line(svg: &mut String, text: std::fmt::Arguments) {
    // Writing to a string does not fail.
    let _ = writeln!(svg, "{text}");
}

/// Text as XML has it.
pub fn escape(text: &str) -> String {
    // XML has no way to write these.
    let text = text.replace(|c: char| c.is_control(), " ");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
