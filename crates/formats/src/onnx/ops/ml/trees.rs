//! Ensembles of decision trees, in the form of version 5 and in that of before.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Aggregate, BinaryKind, Branch, Next, TreeEnsemble, TreeNode, Trees};

use super::scores::{Labels, PostTransform, both_sides};
use super::{Family, OpTable, floats};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("TreeEnsemble", ensemble),
    ("TreeEnsembleClassifier", classifier),
    ("TreeEnsembleRegressor", regressor),
]);

/// The numbers of an attribute that is a tensor, or of the older one that is a list.
fn values(b: &NodeBuilder, tensor: &str, list: &str) -> Result<Vec<f64>> {
    match b.tensor(tensor)? {
        Some(tensor) => tensor.to_f64s(),
        None => floats(b, list),
    }
}

fn attribute<T: Copy>(list: &[T], i: usize, name: &str) -> Result<T> {
    let short = || invalid(format!("the attribute `{name}` is too short"));
    list.get(i).copied().ok_or_else(short)
}

fn index(n: i64, name: &str) -> Result<u32> {
    u32::try_from(n).map_err(|_| invalid(format!("the attribute `{name}` holds {n}")))
}

fn leads_back() -> Error {
    invalid("a tree leads back to itself")
}

/// Brings nodes, whose branches lead to nodes of `nodes` as they stand there, into an order in which
/// every one stands before those it leads to.
fn in_order(nodes: Vec<TreeNode>, roots: Vec<Next>) -> Result<(Vec<TreeNode>, Vec<Next>)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Begun,
        Done,
    }
    let wrong = || invalid("a tree leads to a node that is not there");
    let mut seen = vec![Seen::Not; nodes.len()];
    let mut finished = Vec::with_capacity(nodes.len());
    for &root in &roots {
        let Next::Node(root) = root else { continue };
        let mut path = vec![root as usize];
        while let Some(&at) = path.last() {
            let node = nodes.get(at).ok_or_else(wrong)?;
            if seen[at] == Seen::Begun {
                seen[at] = Seen::Done;
                finished.push(at);
            }
            if seen[at] == Seen::Done {
                path.pop();
                continue;
            }
            seen[at] = Seen::Begun;
            for next in [node.yes, node.no] {
                let Next::Node(next) = next else { continue };
                match seen.get(next as usize).ok_or_else(wrong)? {
                    Seen::Not => path.push(next as usize),
                    Seen::Begun => return Err(leads_back()),
                    Seen::Done => {}
                }
            }
        }
    }
    finished.reverse();
    let mut place = vec![0u32; nodes.len()];
    for (new, &old) in finished.iter().enumerate() {
        place[old] = new as u32;
    }
    let moved = |next| match next {
        Next::Node(node) => Next::Node(place[node as usize]),
        leaf => leaf,
    };
    let ordered = finished.iter().map(|&old| TreeNode {
        yes: moved(nodes[old].yes),
        no: moved(nodes[old].no),
        ..nodes[old].clone()
    });
    let ordered = ordered.collect();
    Ok((ordered, roots.into_iter().map(moved).collect()))
}

/// The node of the graph for trees; `targets` columns.
fn grow(
    b: &mut NodeBuilder,
    trees: Trees,
    targets: usize,
    aggregate: Aggregate,
    base: Vec<f64>,
) -> Result<ValueId> {
    trees.check(targets)?;
    if !base.is_empty() && base.len() != targets {
        return Err(invalid("not as many base values as targets"));
    }
    let x = b.input(0)?;
    let op = TreeEnsemble {
        trees: Arc::new(trees),
        targets,
        aggregate,
        base,
    };
    b.op(op, &[x])
}

/// Version 5: nodes and leaves lie in lists of their own.
fn ensemble(b: &mut NodeBuilder) -> Result<()> {
    let ints = |name: &str| -> Result<Vec<i64>> { Ok(b.ints(name)?.unwrap_or_default()) };
    let numbers = |name: &str| b.tensor(name)?.map_or(Ok(Vec::new()), |t| t.to_f64s());
    let features = ints("nodes_featureids")?;
    let modes = b.tensor("nodes_modes")?.map(|t| t.to_i64s()).transpose()?;
    let modes = modes.unwrap_or_default();
    let splits = numbers("nodes_splits")?;
    let missing = ints("nodes_missing_value_tracks_true")?;
    let to = [ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?];
    let is_leaf = [ints("nodes_trueleafs")?, ints("nodes_falseleafs")?];
    let members = numbers("membership_values")?;
    let mut sets = members.split_inclusive(|v| v.is_nan());
    let mut first_member = 0;
    let mut nodes = Vec::with_capacity(modes.len());
    for (i, &mode) in modes.iter().enumerate() {
        let branch = match mode {
            0 => Branch::LessOrEqual,
            1 => Branch::Less,
            2 => Branch::GreaterOrEqual,
            3 => Branch::Greater,
            4 => Branch::Equal,
            5 => Branch::NotEqual,
            6 => Branch::Member,
            other => return Err(unknown("nodes_modes", &other.to_string())),
        };
        let mut range = (0, 0);
        if branch == Branch::Member {
            let set = sets.next();
            let set = set.ok_or_else(|| invalid("a node without its members"))?;
            let own = set.len() - usize::from(set.last().is_some_and(|v| v.is_nan()));
            range = (first_member as u32, (first_member + own) as u32);
            first_member += set.len();
        }
        let next = |side: usize| -> Result<Next> {
            let to = index(
                attribute(&to[side], i, "nodes_truenodeids")?,
                "nodes_truenodeids",
            )?;
            let leaf = attribute(&is_leaf[side], i, "nodes_trueleafs")? != 0;
            Ok(if leaf { Next::Leaf(to) } else { Next::Node(to) })
        };
        nodes.push(TreeNode {
            feature: index(
                attribute(&features, i, "nodes_featureids")?,
                "nodes_featureids",
            )?,
            branch,
            value: attribute(&splits, i, "nodes_splits")?,
            members: range,
            missing: missing.get(i).is_some_and(|&m| m != 0),
            yes: next(0)?,
            no: next(1)?,
        });
    }
    let roots = ints("tree_roots")?;
    let roots = roots
        .into_iter()
        .map(|r| index(r, "tree_roots").map(Next::Node));
    let (nodes, roots) = in_order(nodes, roots.collect::<Result<_>>()?)?;
    let targets = ints("leaf_targetids")?;
    let weights = numbers("leaf_weights")?;
    let mut all = Vec::with_capacity(weights.len());
    for (i, &weight) in weights.iter().enumerate() {
        let target = index(attribute(&targets, i, "leaf_targetids")?, "leaf_targetids")?;
        all.push((target, weight));
    }
    let trees = Trees {
        roots,
        nodes,
        leaves: (0..all.len() as u32).map(|i| (i, i + 1)).collect(),
        weights: all,
        members,
    };
    let aggregate = match b.int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(unknown("aggregate_function", &other.to_string())),
    };
    let post = match b.int_or("post_transform", 0)? {
        0 => PostTransform::None,
        1 => PostTransform::Softmax,
        2 => PostTransform::Logistic,
        3 => PostTransform::SoftmaxZero,
        4 => PostTransform::Probit,
        other => return Err(unknown("post_transform", &other.to_string())),
    };
    let targets = b.count("n_targets", Some(1))?;
    let y = grow(b, trees, targets, aggregate, Vec::new())?;
    let y = post.apply(b, y)?;
    let x = b.input(0)?;
    let y = b.cast_like(y, x)?;
    b.bind(0, y)
}

/// Before version 5: leaves are nodes among the others, all named by tree and number. `what` begins
/// the names of the attributes with the leaves' weights: `target` or `class`.
fn before_5(b: &NodeBuilder, what: &str) -> Result<Trees> {
    let ints = |name: &str| -> Result<Vec<i64>> { Ok(b.ints(name)?.unwrap_or_default()) };
    let (tree_ids, node_ids) = (ints("nodes_treeids")?, ints("nodes_nodeids")?);
    if tree_ids.len() != node_ids.len() {
        return Err(invalid("not as many trees as nodes are named"));
    }
    let names: Vec<(i64, i64)> = tree_ids.into_iter().zip(node_ids).collect();
    let places: HashMap<(i64, i64), usize> = names
        .iter()
        .enumerate()
        .map(|(i, &name)| (name, i))
        .collect();
    if places.len() != names.len() {
        return Err(invalid("two nodes of one tree have the same number"));
    }
    let modes = b.texts("nodes_modes")?.unwrap_or_default();
    let features = ints("nodes_featureids")?;
    let thresholds = values(b, "nodes_values_as_tensor", "nodes_values")?;
    let missing = ints("nodes_missing_value_tracks_true")?;
    let to = [ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?];
    // What leaves say, by the place of their node.
    let mut said: Vec<Vec<(u32, f64)>> = vec![Vec::new(); names.len()];
    let at = |part: &str| format!("{what}_{part}");
    let (trees, nodes) = (ints(&at("treeids"))?, ints(&at("nodeids"))?);
    let targets = ints(&at("ids"))?;
    let weights = values(b, &at("weights_as_tensor"), &at("weights"))?;
    for (i, &weight) in weights.iter().enumerate() {
        let name = (
            attribute(&trees, i, "treeids")?,
            attribute(&nodes, i, "nodeids")?,
        );
        let place = places.get(&name);
        let place = *place.ok_or_else(|| invalid("a weight of a leaf that is not there"))?;
        said[place].push((index(attribute(&targets, i, "ids")?, "ids")?, weight));
    }
    let mut all = Trees::default();
    for list in said {
        let from = all.weights.len() as u32;
        all.weights.extend(list);
        all.leaves.push((from, all.weights.len() as u32));
    }
    let is_leaf = |i: usize| modes.get(i).is_some_and(|m| m == "LEAF");
    let next = |i: usize| match is_leaf(i) {
        true => Next::Leaf(i as u32),
        false => Next::Node(i as u32),
    };
    let mut led_to = vec![false; names.len()];
    let mut nodes = Vec::with_capacity(names.len());
    for (i, &(tree, _)) in names.iter().enumerate() {
        let branch = match modes.get(i).map(String::as_str) {
            Some("BRANCH_LEQ" | "LEAF") => Branch::LessOrEqual,
            Some("BRANCH_LT") => Branch::Less,
            Some("BRANCH_GTE") => Branch::GreaterOrEqual,
            Some("BRANCH_GT") => Branch::Greater,
            Some("BRANCH_EQ") => Branch::Equal,
            Some("BRANCH_NEQ") => Branch::NotEqual,
            Some(other) => return Err(unknown("nodes_modes", other)),
            None => return Err(invalid("the attribute `nodes_modes` is too short")),
        };
        let mut leads = |side: usize| -> Result<Next> {
            if is_leaf(i) {
                return Ok(Next::Leaf(i as u32));
            }
            let name = (tree, attribute(&to[side], i, "nodes_truenodeids")?);
            let place = places.get(&name);
            let place = *place.ok_or_else(|| invalid("a branch to a node that is not there"))?;
            led_to[place] = true;
            Ok(next(place))
        };
        nodes.push(TreeNode {
            branch,
            yes: leads(0)?,
            no: leads(1)?,
            feature: match is_leaf(i) {
                true => 0,
                false => index(
                    attribute(&features, i, "nodes_featureids")?,
                    "nodes_featureids",
                )?,
            },
            value: thresholds.get(i).copied().unwrap_or(0.0),
            members: (0, 0),
            missing: missing.get(i).is_some_and(|&m| m != 0),
        });
    }
    let roots = (0..names.len()).filter(|&i| !led_to[i]).map(next).collect();
    (all.nodes, all.roots) = in_order(nodes, roots)?;
    // A node that no root leads to is led to by itself, or by one that is.
    let asking = (0..names.len()).filter(|&i| !is_leaf(i)).count();
    if all.nodes.len() != asking {
        return Err(leads_back());
    }
    Ok(all)
}

fn base_values(b: &NodeBuilder) -> Result<Vec<f64>> {
    values(b, "base_values_as_tensor", "base_values")
}

fn regressor(b: &mut NodeBuilder) -> Result<()> {
    let trees = before_5(b, "target")?;
    let aggregate = match b.text_or("aggregate_function", "SUM")? {
        "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Average,
        "MIN" => Aggregate::Min,
        "MAX" => Aggregate::Max,
        other => return Err(unknown("aggregate_function", other)),
    };
    let post = PostTransform::named(b)?;
    let targets = b.count("n_targets", None)?;
    let base = base_values(b)?;
    let y = grow(b, trees, targets, aggregate, base)?;
    let y = post.apply(b, y)?;
    let y = b.cast(y, DType::F32)?;
    b.bind(0, y)
}

fn classifier(b: &mut NodeBuilder) -> Result<()> {
    let trees = before_5(b, "class")?;
    let labels = Labels::read(b, "classlabels_int64s", "classlabels_strings")?;
    let post = PostTransform::named(b)?;
    let mut base = base_values(b)?;
    let mut said = trees.weights.iter().map(|&(class, _)| class);
    let first = said.next().unwrap_or(0);
    let one_class = said.all(|class| class == first);
    let positive = trees.weights.iter().all(|&(_, weight)| weight >= 0.0);
    // There are two classes, and leaves speak of one only: its score decides.
    let binary = one_class && labels.len() <= 2;
    let second = binary && first == 1;
    let targets = match (labels.len(), binary) {
        (0, _) => return Err(unsupported("a classifier without labels")),
        (n, false) => n,
        (_, true) if second => 2,
        (_, true) => 1,
    };
    if binary && !second {
        base.truncate(1);
    }
    if base.len() != targets {
        base.clear();
    }
    let sums = grow(b, trees, targets, Aggregate::Sum, base)?;
    if !binary {
        let label = labels.of_largest(b, sums)?;
        let scores = post.apply(b, sums)?;
        b.bind(0, label)?;
        let scores = b.cast(scores, DType::F32)?;
        return b.bind(1, scores);
    }
    let score = match second {
        true => b.slice(sums, 1, 1, 2)?,
        false => sums,
    };
    // Weights that are all positive are shares.
    let least = if positive && labels.len() == 2 {
        0.5
    } else {
        0.0
    };
    let least = b.number(least, score)?;
    let yes = b.binary(BinaryKind::Greater, score, least)?;
    let yes = b.squeeze(yes, &[1])?;
    let label = if labels.len() == 1 {
        labels.or_nothing(b, yes)?
    } else {
        labels.of_two(b, yes)?
    };
    let scores = match (labels.len(), second, post) {
        (2, false, PostTransform::None | PostTransform::Probit) => both_sides(b, score, positive)?,
        (2, false, _) => both_sides(b, score, false)?,
        _ => sums,
    };
    let scores = post.apply(b, scores)?;
    let scores = b.cast(scores, DType::F32)?;
    b.bind(0, label)?;
    b.bind(1, scores)
}
