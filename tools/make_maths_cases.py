#!/usr/bin/env python3
"""Records correctly rounded values of elementary functions for src/kernels/maths_test.cc.

    pip install mpmath && python3 tools/make_maths_cases.py > tests/data/kernels/maths_cases.txt

Each line is `function argument... expected`, numbers as C hexadecimal floats. f32 functions have f32 arguments and
expectations rounded to f32. Overflow is written inf; expectations below the normal range of f32 are 0 for exp32.
"""

import random
import struct

import mpmath

mpmath.mp.prec = 320
F32_MIN_NORMAL = mpmath.mpf(2) ** -126


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def round_to_f32(y):
    """Nearest even in one step from the exact value (float() first would round twice)."""
    if y == 0:
        return 0.0
    exponent = max(int(mpmath.floor(mpmath.log(abs(y), 2))), -126)
    unit = mpmath.mpf(2) ** (exponent - 23)
    rounded = mpmath.nint(y / unit) * unit
    return float("inf") if abs(rounded) >= mpmath.mpf(2) ** 128 else float(rounded)


def emit(name, args, value):
    print(name, *[float.hex(a) for a in args], "inf" if value == float("inf") else float.hex(float(value)))


def f64_cases(rng):
    exact = mpmath.mpf
    for x in [0.0, -0.0, 1.0, -1.0, 1e-300, 709.7, 709.79, -708.3, -708.5, -744.0, -745.2, 0.34657, -0.34658]:
        emit("exp64", [x], mpmath.exp(exact(x)))
    for _ in range(150):
        x = rng.uniform(-708, 709.7) if rng.random() < 0.5 else rng.choice([-1, 1]) * 10 ** rng.uniform(-12, 1)
        emit("exp64", [x], mpmath.exp(exact(x)))
    near_one = [1.0, 1 - 2**-53, 1 + 2**-52, 0.7071067811865476, 1.4142135623730951, 1.4142135623730949]
    for x in near_one + [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 10000.0, 1e6]:
        emit("log64", [x], mpmath.log(exact(x)))
    for _ in range(150):
        x = 10 ** rng.uniform(-300, 300) if rng.random() < 0.5 else 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-15, -0.4)
        emit("log64", [x], mpmath.log(exact(x)))
    for base in [10000.0, 1e5, 5e5, 1e6]:  # rotary frequencies
        for dims in [64, 80, 128, 256]:
            for i in range(0, dims, 14):
                e = -i / dims
                emit("pow64", [base, e], mpmath.power(exact(base), exact(e)))
    for _ in range(150):
        base = 10 ** rng.uniform(-20, 20)
        e = rng.uniform(-14, 14)
        emit("pow64", [base, e], mpmath.power(exact(base), exact(e)))
    angles = [0.0, 1e-300, 0.5, 0.785398163397448, 0.7853981633974484, 1.0, 1.5707963267948966, 3.141592653589793]
    angles += [2.0**30, 710.0 * 3.141592653589793 / 2, 131071.0, 1048575.0, 8191.0]
    angles += [float(mpmath.nint(k * mpmath.pi / 2)) for k in (355, 103993, 683565275)]
    angles += [float(k * mpmath.pi / 2) for k in (1, 7, 1001, 65537, 683565274)]
    angles += [10 ** rng.uniform(-8, 9) for _ in range(150)]
    for x in angles:
        for signed in (x, -x):
            emit("sin64", [signed], mpmath.sin(exact(signed)))
            emit("cos64", [signed], mpmath.cos(exact(signed)))


def f32_cases(rng):
    exact = mpmath.mpf
    low, high = f32(-87.33654), f32(88.72283)
    xs = [0.0, -0.0, low, high, f32(88.7229), f32(-87.3366), f32(-100), f32(1e-30), f32(0.34657), f32(-0.34658), 1.0]
    xs += [f32(rng.uniform(low, high)) for _ in range(150)]
    xs += [f32(rng.choice([-1, 1]) * 10 ** rng.uniform(-8, 0.5)) for _ in range(100)]
    for x in xs:
        y = mpmath.exp(exact(x))
        emit("exp32", [x], 0.0 if y < F32_MIN_NORMAL else round_to_f32(y))
    for x in [1.0, f32(1e-45), f32(1.2e-38), f32(3.4e38)] + [f32(10 ** rng.uniform(-38, 38)) for _ in range(100)]:
        emit("log32", [x], round_to_f32(mpmath.log(exact(x))))
    for x in [0.0, -0.0, f32(20), f32(-20), f32(9.0), f32(9.1), f32(1e-40), f32(0.1732868)]:
        emit("tanh32", [x], round_to_f32(mpmath.tanh(exact(x))))
    for _ in range(200):
        x = f32(rng.choice([-1, 1]) * 10 ** rng.uniform(-6, 1))
        emit("tanh32", [x], round_to_f32(mpmath.tanh(exact(x))))


if __name__ == "__main__":
    f64_cases(random.Random(1))
    f32_cases(random.Random(2))
