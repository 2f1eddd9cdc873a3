"""The colors of an organization on its pages, changed where they cannot be read."""

from core.text.colors import (
    BLACK,
    WHITE,
    Rgb,
    mix,
    parse,
    readable_on,
    text_on,
    to_hex,
)

# Of our surfaces in agency.css, those with the least contrast to text.
LIGHT_SURFACE: Rgb = (0xE4, 0xF2, 0xEF)
DARK_SURFACE: Rgb = (0x17, 0x32, 0x2D)
HOVER_STEPS = 6


def stylesheet(primary: str, secondary: str, place: str = ":root") -> str:
    """Return CSS that overrides colors of agency.css. Either color may be empty.

    primary, secondary: as "#rrggbb". place: the selector of where they are.
    """
    css = ""
    if primary:
        css += f"{place} {{ {accent_rules(primary, LIGHT_SURFACE)} }}\n"
        css += "@media (prefers-color-scheme: dark) { "
        css += f"{place} {{ {accent_rules(primary, DARK_SURFACE)} }} }}\n"
    if secondary:
        band = parse(secondary)
        css += (
            f"{place} {{ --band: {secondary}; --on-band: {to_hex(text_on(band))}; }}\n"
        )
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
