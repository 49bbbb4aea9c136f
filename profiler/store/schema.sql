-- SPDX-License-Identifier: Apache-2.0
-- The tables of a recording: docs/contract.md in SQL. Compiled into the library; a test compares it with the contract.
-- Ids are local to a file. Times are CLOCK_REALTIME nanoseconds; an end is a start plus a duration by the monotonic
-- clock. NULL is "not measured", 0 is a measured zero. Columns may be added, never renamed.

CREATE TABLE meta (             -- what the producer knows of itself: origin_ns, schema_version, versions, …
  process_id INTEGER NOT NULL,
  key        TEXT    NOT NULL,
  value      TEXT    NOT NULL,
  PRIMARY KEY (process_id, key)
) WITHOUT ROWID;

CREATE TABLE process (
  process_id INTEGER PRIMARY KEY,
  attempt    INTEGER NOT NULL,
  rank       INTEGER,           -- NULL: the supervisor
  local_rank INTEGER,
  world_size INTEGER,
  host       TEXT    NOT NULL,
  pid        INTEGER NOT NULL,
  parent_pid INTEGER NOT NULL,
  command    TEXT    NOT NULL,
  started_ns INTEGER NOT NULL,
  ended_ns   INTEGER,           -- NULL: it runs, or could not say so
  exit_code  INTEGER,
  signal     INTEGER
);

CREATE TABLE clock (            -- a row every 10 s
  process_id     INTEGER NOT NULL,
  time_ns        INTEGER NOT NULL, -- CLOCK_REALTIME
  monotonic_ns   INTEGER NOT NULL, -- CLOCK_MONOTONIC at that moment
  offset_ns      INTEGER NOT NULL, -- to be added to get the first machine's time
  uncertainty_ns INTEGER NOT NULL
);

CREATE TABLE device (
  device_id    INTEGER PRIMARY KEY,
  process_id   INTEGER NOT NULL,
  uuid         TEXT    NOT NULL,
  pci          TEXT    NOT NULL,
  ordinal      INTEGER NOT NULL,
  kind         TEXT    NOT NULL, -- cuda cpu
  name         TEXT    NOT NULL,
  memory_bytes INTEGER NOT NULL,
  peak_flops   REAL              -- floating-point operations a second, dense, of the compute dtype
);

CREATE TABLE lane (
  lane_id    INTEGER PRIMARY KEY,
  process_id INTEGER NOT NULL,
  device_id  INTEGER,
  kind       TEXT    NOT NULL,   -- phase thread stream
  native_id  INTEGER NOT NULL,   -- thread id, CUDA stream id
  context_id INTEGER,
  name       TEXT    NOT NULL,
  sort_order INTEGER NOT NULL
);

CREATE TABLE name (              -- texts that repeat
  name_id INTEGER PRIMARY KEY,
  text    TEXT NOT NULL UNIQUE
);

CREATE TABLE unit (
  unit_id         INTEGER PRIMARY KEY,
  process_id      INTEGER NOT NULL,
  name            TEXT    NOT NULL,
  parent_unit_id  INTEGER,          -- the unit whose bucket this is
  kind            TEXT    NOT NULL, -- embedding block head norm other
  ordinal         INTEGER NOT NULL, -- in the order of the forward pass
  parameters      INTEGER NOT NULL, -- elements of the whole unit
  parameter_bytes INTEGER NOT NULL, -- of the whole unit in the compute dtype
  shard_bytes     INTEGER NOT NULL, -- this rank's slice of the masters, padding counted
  padding_bytes   INTEGER NOT NULL
);

CREATE TABLE config (            -- what was in force from a step on
  config_id    INTEGER PRIMARY KEY,
  process_id   INTEGER NOT NULL,
  first_step   INTEGER NOT NULL,
  changed_json TEXT    NOT NULL,
  full_json    TEXT    NOT NULL,
  origin       TEXT    NOT NULL, -- start user undo sweep
  requested_ns INTEGER NOT NULL
);

-- The sums (interval_sums.h) stay when the retention deletes a step's spans, and are NULL at level off:
--   compute_ns + exposed_communication_ns + exposed_copy_ns + idle_ns = wall_ns
--   exposed_all_gather_ns + exposed_reduce_scatter_ns + exposed_all_reduce_ns + exposed_other_communication_ns
--     = exposed_communication_ns
--   idle_host_ns + idle_peer_ns + idle_other_ns = idle_ns
-- The compute of analyze's waterfall is compute_ns - optimizer_ns.
CREATE TABLE step (
  step_id         INTEGER PRIMARY KEY,
  process_id      INTEGER NOT NULL,
  number          INTEGER NOT NULL,
  config_id       INTEGER,
  level           TEXT    NOT NULL, -- off light full
  start_ns        INTEGER NOT NULL,
  end_ns          INTEGER,          -- NULL: it runs, or the process died in it
  loss            REAL,             -- of the global batch, a counted token
  gradient_norm   REAL,             -- of the whole model, before clipping
  validation_loss REAL,
  learning_rate   REAL,
  tokens          INTEGER,          -- this rank's
  state           TEXT,             -- ok nan inf skipped; NULL: the loss is not known yet
  wall_ns                         INTEGER,
  compute_ns                      INTEGER,
  communication_ns                INTEGER,
  overlapped_communication_ns     INTEGER,
  exposed_communication_ns        INTEGER,
  copy_ns                         INTEGER,
  exposed_copy_ns                 INTEGER,
  idle_ns                         INTEGER,
  exposed_all_gather_ns           INTEGER,
  exposed_reduce_scatter_ns       INTEGER,
  exposed_all_reduce_ns           INTEGER,
  exposed_other_communication_ns  INTEGER,
  optimizer_ns                    INTEGER,
  idle_host_ns                    INTEGER,
  idle_peer_ns                    INTEGER,
  idle_other_ns                   INTEGER,
  peak_allocated_bytes            INTEGER,
  spans_kept                      INTEGER NOT NULL -- 0: the retention has deleted them
);
CREATE INDEX step_number ON step (process_id, number);

CREATE TABLE span (              -- real traces repeat (lane, start)
  lane_id       INTEGER NOT NULL,
  start_ns      INTEGER NOT NULL,
  span_id       INTEGER NOT NULL,
  duration_ns   INTEGER,         -- NULL: still open
  name_id       INTEGER NOT NULL,
  category      TEXT    NOT NULL, -- compute communication copy host idle
  phase         TEXT,            -- input forward recompute backward optimizer checkpoint validate; NULL: unknown
  step_id       INTEGER,
  unit_id       INTEGER,
  collective_id INTEGER,
  correlation   INTEGER,         -- CUPTI's correlation id
  bytes         INTEGER,
  PRIMARY KEY (lane_id, start_ns, span_id)
) WITHOUT ROWID;

CREATE TABLE kernel (            -- at level full, beside the kernel's span
  span_id      INTEGER NOT NULL,
  lane_id      INTEGER NOT NULL,
  start_ns     INTEGER NOT NULL,
  grid         TEXT    NOT NULL, -- "x,y,z"
  block        TEXT    NOT NULL,
  registers    INTEGER NOT NULL, -- a thread
  shared_bytes INTEGER NOT NULL, -- a block, static and dynamic
  graph_id     INTEGER,
  PRIMARY KEY (lane_id, start_ns, span_id)
) WITHOUT ROWID;

CREATE TABLE communicator (
  communicator_id INTEGER PRIMARY KEY,
  process_id      INTEGER NOT NULL,
  uid             TEXT    NOT NULL, -- equal on all its ranks, new for each attempt
  backend         TEXT    NOT NULL, -- nccl gloo
  size            INTEGER NOT NULL,
  rank_in         INTEGER NOT NULL,
  members_json    TEXT    NOT NULL  -- global ranks
);

CREATE TABLE collective (        -- joined across ranks by (uid, sequence); send and recv by (uid, pair, sequence)
  collective_id   INTEGER PRIMARY KEY,
  communicator_id INTEGER NOT NULL,
  sequence        INTEGER NOT NULL,
  operation       TEXT    NOT NULL, -- all_gather reduce_scatter all_reduce broadcast all_to_all send recv
  unit_id         INTEGER,
  step_id         INTEGER,
  phase           TEXT,
  dtype           TEXT    NOT NULL,
  input_bytes     INTEGER NOT NULL, -- of this rank
  output_bytes    INTEGER NOT NULL,
  peer            INTEGER,
  group_id        INTEGER,
  enqueued_ns     INTEGER NOT NULL,
  started_ns      INTEGER,
  ended_ns        INTEGER,
  wait_ns         INTEGER,          -- from its start until the last rank's
  algorithm       TEXT,
  channels        INTEGER
);
CREATE INDEX collective_enqueued ON collective (enqueued_ns);

-- The categories and rounding_bytes sum to allocated_bytes, with pending_free_bytes to active_bytes.
CREATE TABLE memory (
  memory_id           INTEGER PRIMARY KEY,
  process_id          INTEGER NOT NULL,
  place               TEXT    NOT NULL, -- device pinned host nvme
  device_id           INTEGER,
  time_ns             INTEGER NOT NULL,
  step_id             INTEGER,
  is_step_peak        INTEGER NOT NULL, -- 1: the exact peak of its step
  parameters_bytes    INTEGER NOT NULL,
  gathered_bytes      INTEGER NOT NULL,
  gradients_bytes     INTEGER NOT NULL,
  optimizer_bytes     INTEGER NOT NULL,
  activations_bytes   INTEGER NOT NULL,
  communication_bytes INTEGER NOT NULL,
  temporary_bytes     INTEGER NOT NULL,
  input_bytes         INTEGER NOT NULL,
  other_bytes         INTEGER NOT NULL,
  rounding_bytes      INTEGER NOT NULL, -- what the allocator rounds up
  pending_free_bytes  INTEGER NOT NULL, -- freed, the stream not done
  allocated_bytes     INTEGER NOT NULL,
  active_bytes        INTEGER NOT NULL,
  reserved_bytes      INTEGER NOT NULL,
  process_used_bytes  INTEGER,          -- NVML
  device_used_bytes   INTEGER           -- NVML
);
CREATE INDEX memory_time ON memory (time_ns);
CREATE INDEX memory_step_peak ON memory (step_id) WHERE is_step_peak = 1;

CREATE TABLE memory_peak (       -- unit × category in a sample that is a step's peak
  memory_id  INTEGER NOT NULL,
  process_id INTEGER NOT NULL,
  unit_id    INTEGER,
  category   TEXT    NOT NULL,
  bytes      INTEGER NOT NULL
);
CREATE INDEX memory_peak_memory ON memory_peak (memory_id);

CREATE TABLE allocation (        -- at level full
  process_id   INTEGER NOT NULL,
  place        TEXT    NOT NULL,
  device_id    INTEGER,
  address      INTEGER NOT NULL,
  bytes        INTEGER NOT NULL,
  category     TEXT    NOT NULL,
  unit_id      INTEGER,
  allocated_ns INTEGER NOT NULL,
  freed_ns     INTEGER            -- NULL: live
);
CREATE INDEX allocation_freed ON allocation (freed_ns);

CREATE TABLE segment (           -- the allocator's segments at a moment
  process_id  INTEGER NOT NULL,
  device_id   INTEGER NOT NULL,
  time_ns     INTEGER NOT NULL,
  address     INTEGER NOT NULL,
  bytes       INTEGER NOT NULL,
  blocks_json TEXT    NOT NULL
);

CREATE TABLE metric (            -- the unit is the end of the name: power_watts, pcie_rx_bytes_per_second
  process_id INTEGER NOT NULL,
  device_id  INTEGER,
  time_ns    INTEGER NOT NULL,
  name_id    INTEGER NOT NULL,
  value      REAL    NOT NULL
);
CREATE INDEX metric_time ON metric (time_ns);

CREATE TABLE event (
  process_id  INTEGER NOT NULL,
  device_id   INTEGER,
  time_ns     INTEGER NOT NULL,
  step_id     INTEGER,
  kind        TEXT    NOT NULL,  -- command toggle checkpoint recording warning nan out_of_memory death
  text        TEXT    NOT NULL,
  detail_json TEXT
);

CREATE TABLE flush (             -- a row a commit, at least every 500 ms
  flush_id        INTEGER PRIMARY KEY,
  process_id      INTEGER NOT NULL,
  written_ns      INTEGER NOT NULL,
  first_start_ns  INTEGER,       -- of this commit's spans and collectives: live readers read again from here
  last_end_ns     INTEGER,
  spans           INTEGER NOT NULL, -- in this commit
  dropped_records INTEGER NOT NULL  -- lost since the commit before
);
