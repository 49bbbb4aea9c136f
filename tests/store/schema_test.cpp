// SPDX-License-Identifier: Apache-2.0
// The tables against docs/contract.md: every table and column that it names, in its words.
#include "profiler/store/schema.h"

#include "profiler/store/writer.h"
#include "recording_fixture.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace shardscope::store {
namespace {

/// Golden: table → columns in order; ? may be NULL. Columns are added at the contract's places, never renamed.
const std::vector<std::pair<std::string, std::string>> kContract = {
    {"meta", "process_id key value"},
    {"process", "process_id attempt rank? local_rank? world_size? host pid parent_pid command started_ns ended_ns? "
                "exit_code? signal?"},
    {"clock", "process_id time_ns monotonic_ns offset_ns uncertainty_ns"},
    {"device", "device_id process_id uuid pci ordinal kind name memory_bytes peak_flops?"},
    {"lane", "lane_id process_id device_id? kind native_id context_id? name sort_order"},
    {"name", "name_id text"},
    {"unit", "unit_id process_id name parent_unit_id? kind ordinal parameters parameter_bytes shard_bytes "
             "padding_bytes"},
    {"config", "config_id process_id first_step changed_json full_json origin requested_ns"},
    {"step", "step_id process_id number config_id? level start_ns end_ns? loss? gradient_norm? validation_loss? "
             "learning_rate? tokens? state? wall_ns? compute_ns? communication_ns? overlapped_communication_ns? "
             "exposed_communication_ns? copy_ns? exposed_copy_ns? idle_ns? exposed_all_gather_ns? "
             "exposed_reduce_scatter_ns? exposed_all_reduce_ns? exposed_other_communication_ns? optimizer_ns? "
             "idle_host_ns? idle_peer_ns? idle_other_ns? peak_allocated_bytes? spans_kept"},
    {"span", "lane_id start_ns span_id duration_ns? name_id category phase? step_id? unit_id? collective_id? "
             "correlation? bytes?"},
    {"kernel", "span_id lane_id start_ns grid block registers shared_bytes graph_id?"},
    {"communicator", "communicator_id process_id uid backend size rank_in members_json"},
    {"collective", "collective_id communicator_id sequence operation unit_id? step_id? phase? dtype input_bytes "
                   "output_bytes peer? group_id? enqueued_ns started_ns? ended_ns? wait_ns? algorithm? channels?"},
    {"memory", "memory_id process_id place device_id? time_ns step_id? is_step_peak parameters_bytes gathered_bytes "
               "gradients_bytes optimizer_bytes activations_bytes communication_bytes temporary_bytes input_bytes "
               "other_bytes rounding_bytes pending_free_bytes allocated_bytes active_bytes reserved_bytes "
               "process_used_bytes? device_used_bytes?"},
    {"memory_peak", "memory_id process_id unit_id? category bytes"},
    {"allocation", "process_id place device_id? address bytes category unit_id? allocated_ns freed_ns?"},
    {"segment", "process_id device_id time_ns address bytes blocks_json"},
    {"metric", "process_id device_id? time_ns name_id value"},
    {"event", "process_id device_id? time_ns step_id? kind text detail_json?"},
    {"flush", "flush_id process_id written_ns first_start_ns? last_end_ns? spans dropped_records"},
};

class SchemaTest : public testing::Test
{
protected:
    void SetUp() override
    {
        ASSERT_TRUE(Writer::open(path()));
        m_database = std::make_unique<SQLite::Database>(path().string());
    }
    std::filesystem::path path() const { return m_folder.path() / "rank-0.sqlite"; }

    test::TemporaryFolder m_folder;
    std::unique_ptr<SQLite::Database> m_database;
};

TEST_F(SchemaTest, TablesAndColumnsAreTheContracts)
{
    std::vector<std::string> tables;
    SQLite::Statement query(*m_database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid");
    while (query.executeStep())
        tables.push_back(query.getColumn(0).getString());
    std::vector<std::string> expected;
    for (const auto &[table, columns] : kContract) {
        expected.push_back(table);
        std::string found;
        SQLite::Statement info(*m_database, "SELECT name, \"notnull\" = 0 AND pk = 0 FROM pragma_table_info(?)");
        info.bind(1, table);
        while (info.executeStep()) {
            found += found.empty() ? "" : " ";
            found += info.getColumn(0).getString() + (info.getColumn(1).getInt() ? "?" : "");
        }
        EXPECT_EQ(found, columns) << "table " << table;
    }
    EXPECT_EQ(tables, expected);
    EXPECT_EQ(std::vector<std::string>(tableNames().begin(), tableNames().end()), expected);
}

TEST_F(SchemaTest, TimesAndBytesAreIntegers)
{
    for (const auto &[table, columns] : kContract) {
        SQLite::Statement info(*m_database, "SELECT name, type FROM pragma_table_info(?)");
        info.bind(1, table);
        while (info.executeStep()) {
            const std::string name = info.getColumn(0).getString();
            const bool whole = name.ends_with("_ns") || name.ends_with("_bytes") || name.ends_with("_id");
            EXPECT_TRUE(!whole || info.getColumn(1).getString() == std::string("INTEGER")) << table << "." << name;
        }
    }
}

TEST_F(SchemaTest, SpansAreClustered)
{
    const std::string sql = m_database->execAndGet("SELECT sql FROM sqlite_master WHERE name = 'span'").getString();
    EXPECT_THAT(sql, testing::HasSubstr("PRIMARY KEY (lane_id, start_ns, span_id)"));
    EXPECT_THAT(sql, testing::HasSubstr("WITHOUT ROWID"));
    EXPECT_EQ(m_database
                  ->execAndGet("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'span' AND "
                               "sql IS NOT NULL")
                  .getInt(),
              0); // a second index would halve the insert rate
}

} // namespace
} // namespace shardscope::store
