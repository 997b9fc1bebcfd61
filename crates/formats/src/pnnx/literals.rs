//! Arithmetic of numbers that stand in the file.

use super::value::Value;

/// The function `name` of literals; `None` where they are none, or the result is to be left to tensors.
pub fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    match *arguments {
        [Value::Int(a)] => of_int(name, a),
        [Value::Float(a)] => of_float(name, a),
        [Value::Int(a), Value::Int(b)] => of_ints(name, a, b),
        [Value::Int(a), Value::Float(b)] => of_floats(name, a as f64, b),
        [Value::Float(a), Value::Int(b)] => of_floats(name, a, b as f64),
        [Value::Float(a), Value::Float(b)] => of_floats(name, a, b),
        _ => None,
    }
}

fn of_int(name: &str, a: i64) -> Option<Value> {
    Some(match name {
        "int" | "floor" | "ceil" | "round" | "trunc" | "torch.long" => Value::Int(a),
        "neg" => Value::Int(a.checked_neg()?),
        "abs" => Value::Int(a.checked_abs()?),
        "sign" => Value::Int(a.signum()),
        "square" => Value::Int(a.checked_mul(a)?),
        "torch.bool" => Value::Bool(a != 0),
        _ => return of_float(name, a as f64),
    })
}

fn of_float(name: &str, a: f64) -> Option<Value> {
    Some(Value::Float(match name {
        "int" | "torch.long" => {
            let whole = a.trunc();
            let fits = whole >= i64::MIN as f64 && whole < i64::MAX as f64;
            return fits.then_some(Value::Int(whole as i64));
        }
        "torch.float" => a,
        "neg" => -a,
        "abs" => a.abs(),
        "floor" => a.floor(),
        "ceil" => a.ceil(),
        "trunc" => a.trunc(),
        "round" => a.round_ties_even(),
        "sqrt" => a.sqrt(),
        "rsqrt" => a.sqrt().recip(),
        "square" => a * a,
        "reciprocal" => a.recip(),
        "exp" => a.exp(),
        "log" => a.ln(),
        _ => return None,
    }))
}

fn of_ints(name: &str, a: i64, b: i64) -> Option<Value> {
    Some(Value::Int(match name {
        "add" => a.checked_add(b)?,
        "sub" => a.checked_sub(b)?,
        "mul" => a.checked_mul(b)?,
        "floor_divide" => floor_divided(a, b)?,
        "remainder" => a.checked_sub(floor_divided(a, b)?.checked_mul(b)?)?,
        "max" | "maximum" => a.max(b),
        "min" | "minimum" => a.min(b),
        "pow" if b >= 0 => a.checked_pow(u32::try_from(b).ok()?)?,
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "lshift" if b >= 0 => a.checked_mul(2i64.checked_pow(u32::try_from(b).ok()?)?)?,
        "rshift" if b >= 0 => a.checked_shr(u32::try_from(b).ok()?)?,
        _ => return of_floats(name, a as f64, b as f64),
    }))
}

/// `a // b` of Python, which rounds down.
fn floor_divided(a: i64, b: i64) -> Option<i64> {
    let (whole, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    Some(whole - i64::from(rest != 0 && (rest < 0) != (b < 0)))
}

fn of_floats(name: &str, a: f64, b: f64) -> Option<Value> {
    Some(Value::Float(match name {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" if b != 0.0 => a / b,
        "floor_divide" if b != 0.0 => (a / b).floor(),
        "remainder" if b != 0.0 => a - (a / b).floor() * b,
        "fmod" if b != 0.0 => a % b,
        "pow" => a.powf(b),
        "max" | "maximum" => a.max(b),
        "min" | "minimum" => a.min(b),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_those_of_python() {
        let ints = |name, a, b| call(name, &[Value::Int(a), Value::Int(b)]);
        for (name, a, b, result) in [
            ("floor_divide", 7, 2, Some(Value::Int(3))),
            ("floor_divide", -7, 2, Some(Value::Int(-4))),
            ("floor_divide", 7, -2, Some(Value::Int(-4))),
            ("floor_divide", 7, 0, None),
            ("floor_divide", i64::MIN, -1, None),
            ("remainder", -7, 2, Some(Value::Int(1))),
            ("remainder", 7, -2, Some(Value::Int(-1))),
            ("div", 7, 2, Some(Value::Float(3.5))),
            ("div", 7, 0, None),
            ("pow", 2, -1, Some(Value::Float(0.5))),
            ("add", i64::MAX, 1, None),
        ] {
            assert_eq!(ints(name, a, b), result, "{name}");
        }
        assert_eq!(call("int", &[Value::Float(-2.7)]), Some(Value::Int(-2)));
        assert_eq!(call("int", &[Value::Float(1e30)]), None);
        assert_eq!(call("round", &[Value::Float(2.5)]), Some(Value::Float(2.0)));
    }
}
