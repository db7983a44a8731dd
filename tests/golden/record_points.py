#!/usr/bin/env python3
"""Makes points with exact results for functions of which `ulp.jsonl` has none.

    python tests/golden/record_points.py > tests/golden/ulp-more.jsonl

Needs mpmath (the file was made with 1.3.0). The arithmetic has 600 bits, so the result is rounded correctly; the points are drawn from a fixed seed. A line is a point as in `ulp.jsonl`: {"f": function, "d": f32
or f64, "x": [operands' bits], "y": the correctly rounded result's bits, "e": exact - y in ulps of y}; bits are the bytes
in little-endian order. Points whose result overflows, is zero, or cancels (`logaddexp2` near 0) are left out.
"""

import json
import random
import struct

import mpmath

mpmath.mp.prec = 600
FORMATS = {"f32": ("<f", 24, -126, 127), "f64": ("<d", 53, -1022, 1023)}
POINTS = 60


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


def logaddexp2(x, y):
    return max(x, y) + mpmath.log1p(mpmath.power(2, -abs(x - y))) / mpmath.log(2)


def spread(low, high):
    """Numbers of both signs whose magnitudes' logarithms are spread evenly."""
    return lambda r: r.choice([-1, 1]) * 2 ** r.uniform(low, high)


def positive(low, high):
    return lambda r: 2 ** r.uniform(low, high)


def functions(d):
    wide = 120 if d == "f32" else 1000
    top = 126 if d == "f32" else 1020
    near_one = lambda r: 1 + 2 ** r.uniform(-20, 3)
    inside = lambda r: r.choice([-1, 1]) * r.choice([r.uniform(0, 1), 1 - 2 ** r.uniform(-20, -1), 2 ** r.uniform(-30, 0)])
    return {
        "exp2": (lambda x: mpmath.power(2, x), [lambda r: r.choice([r.uniform(-top, top), r.uniform(-2, 2)])]),
        "log10": (mpmath.log10, [lambda r: r.choice([positive(-wide, wide), positive(-0.1, 0.1)])(r)]),
        "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), [spread(-wide, wide)]),
        "asinh": (mpmath.asinh, [lambda r: r.choice([spread(-wide, wide), spread(-5, 5)])(r)]),
        "acosh": (mpmath.acosh, [lambda r: r.choice([positive(0, wide), near_one])(r)]),
        "atanh": (mpmath.atanh, [inside]),
        "softplus": (softplus, [lambda r: r.choice([r.uniform(-80, 80), r.uniform(-3, 3)])]),
        "logaddexp2": (logaddexp2, [lambda r: r.uniform(-50, 50), lambda r: r.uniform(-50, 50)]),
        "xlogy": (lambda x, y: x * mpmath.log(y), [spread(-10, 10), positive(-wide / 2, wide / 2)]),
    }


def rounded(exact, d):
    """The nearest number of the dtype, and its ulp; both as mpf."""
    _, digits, least, _ = FORMATS[d]
    exponent = max(mpmath.frexp(exact)[1] - 1, least)
    ulp = mpmath.ldexp(1, exponent - digits + 1)
    y = mpmath.nint(exact / ulp) * ulp
    # A result that rounds up to a power of two has the ulp of that power.
    return y, mpmath.ldexp(1, max(mpmath.frexp(y)[1] - 1, least) - digits + 1) if y else ulp


def main():
    rng = random.Random(20250)
    for d, (form, _, _, most) in FORMATS.items():
        for name, (f, draws) in functions(d).items():
            count, tries = 0, 0
            while count < POINTS:
                # Rounded to the dtype by struct; the first few are whole, as programs have them.
                tries += 1
                x = [struct.pack(form, draw(rng) if tries > 6 else float(round(draw(rng)))) for draw in draws]
                values = [mpmath.mpf(struct.unpack(form, b)[0]) for b in x]
                try:
                    exact = f(*values)
                except (ValueError, ZeroDivisionError):
                    continue
                if isinstance(exact, mpmath.mpc) or not mpmath.isfinite(exact) or exact == 0:
                    continue
                if name == "logaddexp2" and abs(exact) < 1 or abs(exact) >= mpmath.ldexp(1, most):
                    continue
                y, ulp = rounded(exact, d)
                if y == 0:
                    continue
                e = round(float((exact - y) / ulp), 4)
                point = {"f": name, "d": d, "x": [b.hex() for b in x], "y": struct.pack(form, float(y)).hex(), "e": e}
                print(json.dumps(point, separators=(",", ":")))
                count += 1


if __name__ == "__main__":
    main()
