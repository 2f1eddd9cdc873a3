"""The colors of an organization on its pages, changed where they cannot be read.

Contrast is that of WCAG 2.2: 4.5 for text.
"""

Rgb = tuple[int, int, int]

MIN_CONTRAST = 4.5
BLACK: Rgb = (0, 0, 0)
WHITE: Rgb = (255, 255, 255)
# Of our surfaces in agency.css, those with the least contrast to text.
LIGHT_SURFACE: Rgb = (0xE4, 0xF2, 0xEF)
DARK_SURFACE: Rgb = (0x17, 0x32, 0x2D)
STEPS = 50
HOVER_STEPS = 6


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


def stylesheet(primary: str, secondary: str) -> str:
    """Return CSS that overrides colors of agency.css. Either color may be empty.

    primary, secondary: as "#rrggbb".
    """
    css = ""
    if primary:
        css += f":root {{ {accent_rules(primary, LIGHT_SURFACE)} }}\n"
        css += "@media (prefers-color-scheme: dark) { "
        css += f":root {{ {accent_rules(primary, DARK_SURFACE)} }} }}\n"
    if secondary:
        band = parse(secondary)
        css += f":root {{ --band: {secondary}; --on-band: {to_hex(text_on(band))}; }}\n"
    return css


def accent_rules(primary: str, surface: Rgb) -> str:
    accent = readable_on(parse(primary), surface)
    away = text_on(surface)  # so that the contrast grows
    hover = mix(accent, away, HOVER_STEPS)
    on_accent = WHITE if away == BLACK else BLACK
    return (
        f"--accent: {to_hex(accent)}; --accent-hover: {to_hex(hover)}; "
        f"--on-accent: {to_hex(on_accent)};"
    )
