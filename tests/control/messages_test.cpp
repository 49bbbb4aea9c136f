// SPDX-License-Identifier: Apache-2.0
#include "core/control/protocol.h"
#include "core/control/rank_messages.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace shardscope;
using namespace shardscope::control;
using testing::HasSubstr;

TEST(RankMessages, comeBackFromTheirLines)
{
    const std::vector<RankMessage> messages = {
        ReadyMessage{42, 1, 20, "cpu"},
        StepMessage{3, 20, 2.5, std::nullopt, 1024, 5'000'000, {1 << 20, 7, 8}, 99, StepState::Skipped, 512},
        StepFigures{1 << 20, 7, 99},
        PausedMessage{4},
        RunningMessage{4},
        ConfiguredMessage{2, 9},
        CheckpointMessage{5, "/a \"b\"/ü"},
        CheckpointMessage{5, "/a", true},
        WarningMessage{"two\nlines", true, true},
        WarningMessage{"the disk is full", false, false, true},
        FailureMessage{"why", 3, true, 12}};
    for (const RankMessage &message : messages) {
        const std::string line = toLine(message);
        EXPECT_EQ(line.find('\n'), std::string::npos);
        const auto read = messageFromLine(line);
        ASSERT_TRUE(read) << line;
        EXPECT_EQ(toLine(*read), line);
        EXPECT_EQ(read->index(), message.index());
    }
}

TEST(RankMessages, aLossThatIsNoNumberIsNotMeasured)
{
    StepMessage step;
    step.loss = std::nan("");
    const auto read = messageFromLine(toLine(RankMessage{step}));
    ASSERT_TRUE(read);
    EXPECT_FALSE(std::get<StepMessage>(*read).loss);
}

TEST(RankMessages, garbageIsAnErrorAndNoMessage)
{
    for (const char *line : {"", "{", "[]", "null", "{\"type\":\"dance\"}", "{\"type\":5}", "\xff\xfe"})
        EXPECT_FALSE(messageFromLine(line)) << line;
    EXPECT_FALSE(orderFromLine("{\"command\":\"dance\"}"));
}

TEST(Commands, comeBackFromTheirLines)
{
    for (const Order &order : {Order(Command::Pause), Order(Command::Unpause), Order(Command::Checkpoint),
                               Order(Command::Stop), Order(Command::Set, 3)})
        EXPECT_EQ(std::get<Order>(orderFromLine(toLine(order)).value()), order);
}

TEST(Commands, changesComeBackFromTheirLines)
{
    const ConfigurationChange change{
        2, "undo", 77, "a: \"1\" → 2", R"({"a":{"from":"1","to":"2"}})", R"({"b":{"a":2}})"};
    const std::string line = toLine(change);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(std::get<ConfigurationChange>(orderFromLine(line).value()), change);
}

TEST(Protocol, requestsComeBackFromTheirLines)
{
    for (const bool force : {false, true}) {
        const Request set{3, RequestKind::Set, {{"parallel.strategy=none"}, {"block.*:strategy=full"}, force}};
        const auto read = requestFromLine(toLine(set));
        ASSERT_TRUE(read);
        EXPECT_EQ(read->live.assignments, set.live.assignments);
        EXPECT_EQ(read->live.rules, set.live.rules);
        EXPECT_EQ(read->live.force, force);
    }
    const auto request = requestFromLine(toLine(Request{7, RequestKind::StopNow}));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->id, 7);
    EXPECT_EQ(request->kind, RequestKind::StopNow);
}

TEST(Protocol, aSetCarriesWhatIsAskedFor)
{
    const auto set = requestFromLine(toLine(Request{8, RequestKind::Set, {{"a=1", "b=\"x\""}, {"p:c=2"}}}));
    ASSERT_TRUE(set);
    EXPECT_EQ(set->kind, RequestKind::Set);
    EXPECT_THAT(set->live.assignments, testing::ElementsAre("a=1", "b=\"x\""));
    EXPECT_THAT(set->live.rules, testing::ElementsAre("p:c=2"));
    const auto odd = requestFromLine(R"({"version":1,"id":9,"command":"set","set":["a=1",5],"unit":"x"})");
    ASSERT_TRUE(odd);
    EXPECT_THAT(odd->live.assignments, testing::ElementsAre("a=1"));
    EXPECT_TRUE(odd->live.rules.empty());
}

TEST(Protocol, refusedRequestsKeepTheirId)
{
    const auto unknown = requestFromLine(R"({"version":1,"id":9,"command":"dance"})");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().id, 9);
    EXPECT_THAT(unknown.error().text, HasSubstr("dance"));
    const auto newer = requestFromLine(R"({"version":2,"id":3,"command":"pause"})");
    ASSERT_FALSE(newer);
    EXPECT_THAT(newer.error().text, HasSubstr("version 2"));
    EXPECT_FALSE(requestFromLine("pause"));
}

TEST(Protocol, repliesAndEventsAreToldApart)
{
    const auto good = incomingFromLine(toLine(Reply{1, true, {}, {{"step", 4}}}));
    ASSERT_TRUE(good && good->reply);
    EXPECT_EQ(good->reply->result["step"], 4);
    const auto bad = incomingFromLine(toLine(Reply{2, false, "no", {}}));
    ASSERT_TRUE(bad && bad->reply);
    EXPECT_FALSE(bad->reply->ok);
    EXPECT_EQ(bad->reply->error, "no");
    EXPECT_FALSE(bad->reply->refused);
    EXPECT_TRUE(incomingFromLine(toLine(Reply{2, false, "no", {}, true}))->reply->refused);
    EXPECT_FALSE(incomingFromLine(toLine(Reply{2, false, "no", {}, true}))->reply->forcible);
    EXPECT_TRUE(incomingFromLine(toLine(Reply{2, false, "no", {}, true, true}))->reply->forcible);
    const auto event = incomingFromLine(toLine(Event{"step", {{"step", 5}}}));
    ASSERT_TRUE(event && event->event);
    EXPECT_EQ(event->event->name, "step");
    EXPECT_EQ(event->event->data["step"], 5);
}
