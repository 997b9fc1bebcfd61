//! The graph of a model as a picture: what is computed first stands above, and lines lead from values to their readers.

use std::collections::BTreeSet;
use std::fmt::Write;

use kilim::Graph;
use kilim::core::graph::ValueId;

use super::memory::escape;

const MARGIN: f64 = 16.0;
/// The height of a box, and the room below it for lines.
const HEIGHT: f64 = 40.0;
const BELOW: f64 = 32.0;
const BETWEEN: f64 = 16.0;
/// How wide a letter is, about.
const LETTER: f64 = 7.0;
/// Letters of a line that are shown.
const LETTERS: usize = 32;
/// The height of a title.
const TITLE: f64 = 28.0;

#[derive(Clone, Copy)]
enum Kind {
    Input,
    Node,
    Output,
}

/// Something of the graph that is drawn as a box.
struct Tile {
    kind: Kind,
    title: String,
    detail: String,
    /// Boxes whose values it reads.
    from: Vec<usize>,
    layer: usize,
    x: f64,
    width: f64,
}

/// An SVG of a graph, and of the bodies of its control flow below.
pub fn draw(graph: &Graph) -> String {
    let mut drawings = Vec::new();
    collect(graph, String::new(), &mut drawings);
    let (mut content, mut width, mut y) = (String::new(), 0f64, MARGIN);
    for (title, boxes) in &drawings {
        if !title.is_empty() {
            let shown = escape(title);
            let _ = writeln!(
                content,
                "<text x=\"{MARGIN}\" y=\"{}\">{shown}</text>",
                y + 14.0
            );
            y += TITLE;
        }
        draw_boxes(&mut content, boxes, y);
        let layers = boxes.iter().map(|b| b.layer + 1).max().unwrap_or(0);
        y += layers as f64 * (HEIGHT + BELOW) + MARGIN;
        width = boxes.iter().fold(width, |most, b| most.max(b.x + b.width));
    }
    let width = width + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" \
         viewBox=\"0 0 {width} {y}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{content}</svg>\n"
    )
}

/// The boxes of a graph and of the bodies in it, each with what it is called.
fn collect(graph: &Graph, title: String, to: &mut Vec<(String, Vec<Tile>)>) {
    to.push((title, placed(boxes(graph))));
    for node in &graph.nodes {
        for (i, body) in node.op.subgraphs().into_iter().enumerate() {
            collect(body, format!("{}, body {i}", node.name), to);
        }
    }
}

fn boxes(graph: &Graph) -> Vec<Tile> {
    let mut boxes = Vec::new();
    let mut maker: Vec<Option<usize>> = vec![None; graph.values.len()];
    let fact = |v: &ValueId| {
        let value = graph.value(*v);
        format!("{}", value.fact)
    };
    for &input in &graph.inputs {
        maker[input.0] = Some(boxes.len());
        let title = graph.value(input).name.clone();
        boxes.push(tile(Kind::Input, &title, &fact(&input), Vec::new(), 0));
    }
    for node in &graph.nodes {
        let from = node.present_inputs().filter_map(|v| maker[v.0]);
        let from: Vec<usize> = from.collect::<BTreeSet<_>>().into_iter().collect();
        let layer = from.iter().map(|&b| boxes[b].layer + 1).max().unwrap_or(0);
        for output in &node.outputs {
            maker[output.0] = Some(boxes.len());
        }
        let shapes: Vec<String> = node.outputs.iter().map(fact).collect();
        let mut made = tile(Kind::Node, node.op.name(), &shapes.join(" "), from, layer);
        made.title = format!("{} {}", node.op.name(), node.name);
        boxes.push(made);
    }
    for &output in &graph.outputs {
        let from: Vec<usize> = maker[output.0].into_iter().collect();
        let layer = from.iter().map(|&b| boxes[b].layer + 1).max().unwrap_or(0);
        let title = graph.value(output).name.clone();
        boxes.push(tile(Kind::Output, &title, &fact(&output), from, layer));
    }
    boxes
}

fn tile(kind: Kind, title: &str, detail: &str, from: Vec<usize>, layer: usize) -> Tile {
    Tile {
        kind,
        title: title.to_string(),
        detail: detail.to_string(),
        from,
        layer,
        x: 0.0,
        width: 0.0,
    }
}

/// Gives boxes their places: each below the middle of those that it reads, as far as its neighbours leave room.
fn placed(mut boxes: Vec<Tile>) -> Vec<Tile> {
    for b in &mut boxes {
        let letters = b.title.chars().count().max(b.detail.chars().count());
        b.width = letters.min(LETTERS) as f64 * LETTER + BETWEEN;
    }
    let layers = boxes.iter().map(|b| b.layer + 1).max().unwrap_or(0);
    let mut by_layer = vec![Vec::new(); layers];
    for (i, b) in boxes.iter().enumerate() {
        by_layer[b.layer].push(i);
    }
    for layer in by_layer {
        let wished = |i: usize| {
            let from = &boxes[i].from;
            let sum: f64 = from
                .iter()
                .map(|&f| boxes[f].x + boxes[f].width / 2.0)
                .sum();
            match from.len() {
                0 => MARGIN,
                n => sum / n as f64 - boxes[i].width / 2.0,
            }
        };
        let mut row: Vec<(f64, usize)> = layer.into_iter().map(|i| (wished(i), i)).collect();
        row.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = MARGIN;
        for (wish, i) in row {
            boxes[i].x = wish.max(free);
            free = boxes[i].x + boxes[i].width + BETWEEN;
        }
    }
    boxes
}

fn draw_boxes(svg: &mut String, boxes: &[Tile], top: f64) {
    let y = |b: &Tile| top + b.layer as f64 * (HEIGHT + BELOW);
    let middle = |b: &Tile| b.x + b.width / 2.0;
    for b in boxes {
        for &from in &b.from {
            let from = &boxes[from];
            let (x1, y1, x2, y2) = (middle(from), y(from) + HEIGHT, middle(b), y(b));
            let bend = (y1 + y2) / 2.0;
            let _ = writeln!(
                svg,
                "<path d=\"M{x1} {y1} C{x1} {bend} {x2} {bend} {x2} {y2}\" fill=\"none\" stroke=\"#888\"/>"
            );
        }
    }
    for b in boxes {
        let fill = match b.kind {
            Kind::Input => "#d7e5f2",
            Kind::Node => "#f4f1e4",
            Kind::Output => "#f2dad5",
        };
        let (x, y, width) = (b.x, y(b), b.width);
        let whole = escape(&format!("{}: {}", b.title, b.detail));
        let [title, detail] = [&b.title, &b.detail].map(|text| escape(&beginning(text)));
        let _ = writeln!(
            svg,
            "<g><title>{whole}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"4\" \
             fill=\"{fill}\" stroke=\"#555\"/><text x=\"{tx}\" y=\"{ty}\">{title}</text>\
             <text x=\"{tx}\" y=\"{dy}\" fill=\"#666\">{detail}</text></g>",
            tx = x + 8.0,
            ty = y + 16.0,
            dy = y + 32.0,
        );
    }
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kilim::core::ops::{Unary, UnaryKind};
    use kilim::{DType, Fact};

    use super::*;

    #[test]
    fn every_box_is_below_what_it_reads() {
        let mut graph = Graph::new("two");
        let x = graph.add_input("x<1>", Fact::fixed(DType::F32, &[4]));
        let a = graph.apply("a", Unary(UnaryKind::Abs), &[x]);
        let b = graph.apply("b", Unary(UnaryKind::Sqrt), &[a]);
        graph.outputs.extend([a, b]);
        let made = placed(boxes(&graph));
        let layers: Vec<usize> = made.iter().map(|b| b.layer).collect();
        assert_eq!(layers, [0, 1, 2, 2, 3]);
        let overlap =
            |a: &Tile, b: &Tile| a.layer == b.layer && a.x < b.x + b.width && b.x < a.x + a.width;
        for (i, a) in made.iter().enumerate() {
            assert!(made[..i].iter().all(|b| !overlap(a, b)));
        }
        let svg = draw(&graph);
        assert_eq!(svg.matches("<rect").count(), 1 + made.len());
        assert_eq!(svg.matches("<path").count(), 4);
        assert!(svg.contains("x&lt;1&gt;"), "{svg}");
    }
}
