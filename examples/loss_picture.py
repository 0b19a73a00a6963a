"""A picture of losses as SVG, without a plotting package."""

import math
from collections.abc import Sequence
from html import escape


def loss_picture(losses: Sequence[float], title: str, width: int = 640, height: int = 360) -> str:
    """Losses over steps, the vertical axis in powers of ten."""
    logs = [math.log10(max(loss, 1e-30)) for loss in losses]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = max(high, low + 1)
    left, right, top, bottom = 70, width - 20, 40, height - 50

    def x(step: float) -> float:
        return left + (right - left) * step / max(1, len(losses) - 1)

    def y(log: float) -> float:
        return bottom - (bottom - top) * (log - low) / (high - low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{width / 2}" y="24" text-anchor="middle" font-size="15">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        lines.append(f'<line x1="{left}" x2="{right}" y1="{y(power):.1f}" y2="{y(power):.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{y(power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for i in range(5):
        step = i * (len(losses) - 1) / 4
        lines.append(f'<text x="{x(step):.1f}" y="{bottom + 20}" text-anchor="middle">{step:.0f}</text>')
    points = " ".join(f"{x(step):.1f},{y(log):.1f}" for step, log in enumerate(logs))
    lines.append(f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="2"/>')
    lines.append(f'<text x="{(left + right) / 2}" y="{height - 12}" text-anchor="middle">step</text>')
    lines.append(
        f'<text x="18" y="{(top + bottom) / 2}" text-anchor="middle" transform="rotate(-90 18 {(top + bottom) / 2})">loss</text>'
    )
    return "\n".join([*lines, "</svg>"]) + "\n"
