__device__ float far_away(float value) { return value * TILE_WIDTH; }
