// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/common/colors.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::ui {

namespace {

// Okabe & Ito, "Color Universal Design" (2008), and three greys.
constexpr QRgb kBlue = 0xff0072b2;
constexpr QRgb kSky = 0xff56b4e9;
constexpr QRgb kGreen = 0xff009e73;
constexpr QRgb kYellow = 0xfff0e442;
constexpr QRgb kOrange = 0xffe69f00;
constexpr QRgb kVermilion = 0xffd55e00;
constexpr QRgb kPurple = 0xffcc79a7;
constexpr QRgb kGrey = 0xff8f959b;

const Colors &lightColors()
{
    static const Colors colors = {
        .dark = false,
        .page = QColor(0xf3, 0xf4, 0xf5),
        .card = QColor(0xff, 0xff, 0xff),
        .border = QColor(0xcf, 0xd3, 0xd7),
        .grid = QColor(0xe6, 0xe8, 0xea),
        .text = QColor(0x1d, 0x20, 0x23),
        .muted = QColor(0x5d, 0x64, 0x6b),
        .accent = QColor(0x00, 0x63, 0x9c),
        .selection = QColor(0x00, 0x72, 0xb2, 48),
        .good = QColor(0x00, 0x7d, 0x5a),
        .warning = QColor(0x98, 0x55, 0x00),
        .bad = QColor(0xb9, 0x2f, 0x1c),
    };
    return colors;
}

const Colors &darkColors()
{
    static const Colors colors = {
        .dark = true,
        .page = QColor(0x1b, 0x1d, 0x20),
        .card = QColor(0x24, 0x27, 0x2b),
        .border = QColor(0x43, 0x48, 0x4e),
        .grid = QColor(0x36, 0x3a, 0x3f),
        .text = QColor(0xea, 0xec, 0xee),
        .muted = QColor(0xa4, 0xab, 0xb2),
        .accent = QColor(0x6c, 0xbf, 0xf0),
        .selection = QColor(0x56, 0xb4, 0xe9, 56),
        .good = QColor(0x3c, 0xc9, 0x9c),
        .warning = QColor(0xf2, 0xb1, 0x34),
        .bad = QColor(0xff, 0x83, 0x6b),
    };
    return colors;
}

QPalette paletteOf(const Colors &colors, const QColor &button, const QColor &alternate, const QColor &highlight)
{
    QPalette palette(button, colors.page);
    palette.setColor(QPalette::Window, colors.page);
    palette.setColor(QPalette::Base, colors.card);
    palette.setColor(QPalette::AlternateBase, alternate);
    palette.setColor(QPalette::Button, button);
    palette.setColor(QPalette::ToolTipBase, colors.card);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText})
        palette.setColor(role, colors.text);
    palette.setColor(QPalette::PlaceholderText, colors.muted);
    palette.setColor(QPalette::BrightText, colors.bad);
    palette.setColor(QPalette::Highlight, highlight);
    palette.setColor(QPalette::HighlightedText, Qt::white);
    palette.setColor(QPalette::Link, colors.accent);
    palette.setColor(QPalette::LinkVisited, colors.accent);
    QColor off = colors.muted;
    off.setAlpha(150);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, off);
    palette.setColor(QPalette::Disabled, QPalette::Highlight, colors.border);
    return palette;
}

} // namespace

const Colors &Colors::of(const QPalette &palette)
{
    return palette.color(QPalette::Active, QPalette::Window).lightness() < 128 ? darkColors() : lightColors();
}

QColor Colors::onFill(const QColor &fill)
{
    // Only black itself with white leaves no fill between them without a contrast of 4.5.
    return contrast(fill, Qt::black) >= contrast(fill, Qt::white) ? QColor(Qt::black) : QColor(Qt::white);
}

/// Relative luminance, WCAG 2.1.
static double luminanceOf(const QColor &color)
{
    const auto linear = [](double share) {
        return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

double Colors::contrast(const QColor &a, const QColor &b)
{
    const double one = luminanceOf(a), other = luminanceOf(b);
    return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

QColor Colors::category(MemoryCategory category) const
{
    switch (category) {
    case MemoryCategory::Parameters:
        return QColor::fromRgb(kBlue);
    case MemoryCategory::Gathered:
        return QColor::fromRgb(kSky);
    case MemoryCategory::Gradients:
        return QColor::fromRgb(kOrange);
    case MemoryCategory::Optimizer:
        return QColor::fromRgb(kGreen);
    case MemoryCategory::Activations:
        return QColor::fromRgb(kPurple);
    case MemoryCategory::Communication:
        return QColor::fromRgb(kVermilion);
    case MemoryCategory::Temporary:
        return QColor::fromRgb(kYellow);
    case MemoryCategory::Input:
        return QColor(0x7a, 0x5c, 0x3e);
    case MemoryCategory::Other:
        return QColor::fromRgb(kGrey);
    }
    Q_UNREACHABLE();
}

QColor Colors::category(SpanCategory category) const
{
    switch (category) {
    case SpanCategory::Compute:
        return QColor::fromRgb(kBlue);
    case SpanCategory::Communication:
        return QColor::fromRgb(kVermilion);
    case SpanCategory::Copy:
        return QColor::fromRgb(kPurple);
    case SpanCategory::Host:
        return QColor::fromRgb(kGrey);
    case SpanCategory::Idle:
        return dark ? QColor(0x4a, 0x4f, 0x55) : QColor(0xd5, 0xd8, 0xdb);
    }
    Q_UNREACHABLE();
}

QColor Colors::phase(Phase phase) const
{
    switch (phase) {
    case Phase::Input:
        return QColor(0x7a, 0x5c, 0x3e);
    case Phase::Forward:
        return QColor::fromRgb(kSky);
    case Phase::Recompute:
        return QColor::fromRgb(kYellow);
    case Phase::Backward:
        return QColor::fromRgb(kBlue);
    case Phase::Optimizer:
        return QColor::fromRgb(kGreen);
    case Phase::Checkpoint:
        return QColor::fromRgb(kPurple);
    case Phase::Validate:
        return QColor::fromRgb(kOrange);
    }
    Q_UNREACHABLE();
}

QColor Colors::rounding() const
{
    return dark ? QColor(0x5a, 0x60, 0x66) : QColor(0xc4, 0xc8, 0xcc);
}

QColor Colors::series(int index) const
{
    const std::array<QRgb, 8> lines = {
        dark ? kSky : kBlue,        kVermilion, kGreen, kPurple, kOrange, dark ? kBlue : kSky, kGrey,
        dark ? kYellow : 0xff7a5c3e};
    return QColor::fromRgb(lines[static_cast<size_t>(index) % lines.size()]);
}

QColor Colors::state(RunState state) const
{
    switch (state) {
    case RunState::Starting:
    case RunState::Running:
    case RunState::Stopping:
        return good;
    case RunState::Queued:
    case RunState::Paused:
        return warning;
    case RunState::Failed:
    case RunState::Lost:
        return bad;
    case RunState::Done:
        return muted;
    }
    Q_UNREACHABLE();
}

QPalette lightPalette()
{
    return paletteOf(lightColors(), QColor(0xec, 0xee, 0xf0), QColor(0xf7, 0xf8, 0xf9), QColor(0x00, 0x63, 0x9c));
}

QPalette darkPalette()
{
    return paletteOf(darkColors(), QColor(0x33, 0x37, 0x3c), QColor(0x2a, 0x2d, 0x31), QColor(0x1f, 0x74, 0xa8));
}

} // namespace shardscope::ui
