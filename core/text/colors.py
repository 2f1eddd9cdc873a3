"""Colors, and whether text can be read on them.

Contrast is that of WCAG 2.2: 4.5 for text.
"""

Rgb = tuple[int, int, int]

MIN_CONTRAST = 4.5
BLACK: Rgb = (0, 0, 0)
WHITE: Rgb = (255, 255, 255)
STEPS = 50


def parse(color: str) -> Rgb:
    """color: `#rrggbb`."""
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue


def to_hex(color: Rgb) -> str:
    return f"#{bytes(color).hex()}"


def luminance(color: Rgb) -> float:
    shares = [part / 255 for part in color]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
        for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_on(color: Rgb) -> Rgb:
    """Black or white: one of them has a contrast of 4.58 or more to any color."""
    return max((BLACK, WHITE), key=lambda text: contrast(text, color))


def mix(color: Rgb, target: Rgb, step: int) -> Rgb:
    """Go `step` of STEPS from the color to the target."""
    red, green, blue = (
        round(a + (b - a) * step / STEPS) for a, b in zip(color, target, strict=True)
    )
    return red, green, blue


def readable_on(color: Rgb, surface: Rgb) -> Rgb:
    """The color, or the nearest shade of it that can be read on the surface."""
    target = text_on(surface)
    shades = (mix(color, target, step) for step in range(STEPS + 1))
    return next(shade for shade in shades if contrast(shade, surface) >= MIN_CONTRAST)
