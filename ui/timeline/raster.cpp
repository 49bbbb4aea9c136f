// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/raster.h"

#include <algorithm>

namespace shardscope::ui::timeline {

void Raster::fill(int x0, int x1, int y0, int y1, QRgb color)
{
    x0 = std::max(x0, 0);
    x1 = std::min(x1, m_width);
    y1 = std::min(y1, m_height);
    if (x0 >= x1)
        return;
    for (int y = std::max(y0, 0); y < y1; ++y)
        std::fill(m_lines + y * m_stride + x0, m_lines + y * m_stride + x1, color);
}

void Raster::hatch(int x0, int x1, int y0, int y1, QRgb color, QRgb other, int stripe)
{
    x0 = std::max(x0, 0);
    x1 = std::min(x1, m_width);
    y1 = std::min(y1, m_height);
    for (int y = std::max(y0, 0); y < y1; ++y) {
        QRgb *line = m_lines + y * m_stride;
        for (int x = x0; x < x1; ++x)
            line[x] = (x + y) / stripe % 2 == 0 ? color : other;
    }
}

} // namespace shardscope::ui::timeline
