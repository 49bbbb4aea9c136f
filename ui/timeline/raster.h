// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QImage>

namespace shardscope::ui::timeline {

/// Fills rectangles of device pixels straight into an image's lines: most of a timeline's rectangles are a few pixels
/// wide, and a QPainter costs more than the pixels do.
class Raster
{
public:
    explicit Raster(QImage &image) // Format_RGB32
        : m_lines(reinterpret_cast<QRgb *>(image.bits()))
        , m_stride(static_cast<qsizetype>(image.bytesPerLine()) / 4)
        , m_width(image.width())
        , m_height(image.height())
    {
    }

    int width() const { return m_width; }
    int height() const { return m_height; }
    /// Ends excluded; cut to the image.
    void fill(int x0, int x1, int y0, int y1, QRgb color);
    /// Diagonal stripes of both colours, `stripe` pixels wide; they continue from one rectangle to the next.
    void hatch(int x0, int x1, int y0, int y1, QRgb color, QRgb other, int stripe);

private:
    QRgb *m_lines;
    qsizetype m_stride;
    int m_width;
    int m_height;
};

} // namespace shardscope::ui::timeline
