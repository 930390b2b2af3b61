# ruff: noqa: RUF001, of questions in many scripts
import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag.eval.dataset.dataset_reader import (
    Sample,
    as_samples,
    fingerprint_samples,
    parse_samples,
    read_dataset,
    read_samples,
)
from graphrag.eval.errors import DatasetError

ROW = {"question": "Who?", "answer": "Ann", "imdb_key": "a"}
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n"
HELD = {"question": "Who?", "imdb_key": "a", "assertions": ["x"]}


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_three_formats_read_alike(tmp_path):
    rows = [
        {"id": "1", "question": "Who?", "answer": "Ann", "imdb_key": "a", "evidence": ["x", "y"]},
        {"id": "2", "question": "Where?", "answer": "Rome", "imdb_key": "b", "evidence": []},
    ]
    as_json = write(tmp_path, "d.json", json.dumps(rows))
    as_lines = write(tmp_path, "d.jsonl", "\n".join(json.dumps(row) for row in rows) + "\n")
    as_csv = write(
        tmp_path,
        "d.csv",
        "id,question,answer,imdb_key,evidence\n1,Who?,Ann,a,x | y\n2,Where?,Rome,b,\n",
    )
    assert read_samples(as_json) == read_samples(as_lines) == read_samples(as_csv)


def test_other_names_unknown_columns_and_the_only_index():
    row = {"question_id": 7, "question_text": "Who?", "ground_truth": "Ann", "index": "a"}
    (sample,) = parse_samples([{**row, "difficulty": 3}])
    assert (sample.id, sample.question, sample.ground_truth) == ("7", "Who?", "Ann")
    assert (sample.imdb_key, sample.tags) == ("a", {"difficulty": 3})
    (sample,) = parse_samples([{"question": "Who?", "answer": "Ann"}], only_key="a")
    assert sample.imdb_key == "a"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW, {"answer": "x", "imdb_key": "a"}], "row 2: question is missing"),
        ([{**ROW, "answer": ""}], "row 1: answer is missing"),
        ([{**ROW, "answerable": "nein"}], "answerable must be true or false, not 'nein'."),
        ([{**ROW, "answerable": 2.5}], "answerable must be true or false, not 2.5."),
        ([{**ROW, "evidence": 3}], "row 1: evidence is wrong"),
        ([{**ROW, "question": "   "}], "row 1: question is wrong"),
        ([{"question": "Who?", "answer": "Ann"}], "row 1: imdb_key is missing"),
        (["text"], "row 1 is not an object"),
        (
            [{**ROW, "id": "1"}, {**ROW, "id": "1", "question": "Why?"}],
            "rows 1 and 2 have the same id '1', but ask different questions",
        ),
        (
            [{**ROW, "id": "1"}, {**ROW, "id": "1", "imdb_key": "b"}],
            "rows 1 and 2 have the same id '1'",
        ),
        ([{**ROW, "answer": None}, ROW], "row 1: answer is missing"),
        ([{**ROW, "answer": True}], "row 1: answer is wrong"),
        ([{**HELD, "assertions": []}], "row 1: answer is missing; give it, .* or assertions"),
        ([{**HELD, "assertions": ["x", 3]}], "row 1: assertion 2 is wrong: it must be a text"),
        (
            [{**HELD, "assertions": [{"text": "x", "wieght": "okay"}]}],
            "row 1: assertion 1 is wrong: there is no key 'wieght'; did you mean 'weight'",
        ),
        (
            [{**HELD, "assertions": [{"text": "x", "must": "not"}]}],
            "row 1: assertion 1 must is wrong: Input should be 'say' or 'not_say'",
        ),
        ([HELD, {**HELD, "assertions": ["y"]}], "but have different assertions; keep one"),
        ([{**ROW, "question": "Who?" * 40_000}], "row 1: question is wrong: it has 160,000 char"),
        ([{**ROW, "answer": "An\x00n"}], "row 1: answer is wrong: it contains a NUL"),
        ([{**ROW, "evidence": ["\ud800"]}], "row 1 contains half of a character"),
        ([ROW, {**ROW, "question": "Why?", "note": "\ud800"}], "row 2 contains half of a char"),
        ([], "has no rows"),
        ([{**ROW, "time_limit_s": "soon"}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": 0}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": [1]}], "row 1: time_limit_s must be seconds above 0"),
        ([{**ROW, "time_limit_s": "nan"}], "row 1: time_limit_s must be seconds above 0"),
    ],
)
def test_a_bad_row_is_named(rows, message):
    with pytest.raises(DatasetError, match=message):
        parse_samples(rows)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.json", "{", "not valid JSON"),
        ("d.json", '{"a": 1}', "must contain a JSON list .* keys found: 'a'"),
        ("d.json", '{"data": [], "questions": []}', "must contain a JSON list"),
        ("d.json", "7", "must contain a JSON list of rows, not int"),
        ("d.json", '{"question": "a"}\n{"question": "b"}', r"has a row, end its name in \.jsonl"),
        ("d.json", "[" * 100_000, "not valid JSON: it is nested too deeply"),
        ("d.jsonl", json.dumps(ROW) + '\n\n{"question": "a"\n', "line 3 is not valid JSON"),
        ("d.json", '[{"question": "Who?", "answer": "Ann", "score": NaN}]', "NaN is not a value"),
        (
            "d.csv",
            "question,answer\n\nWho?,Ann,extra\n",
            r"row 1 \(line 3\) has 3 cells, the header has 2 columns; is a cell .* a comma",
        ),
        ("d.csv", "question;answer\nWho?\n", r"row 1 .* has 1 cells, the header has 2 .* semic"),
        ("d.csv", "question,answer,question\na,b,c\n", "two columns are called 'question'"),
        ("d.csv", "question,answer\n", "has no rows"),
        ("d.csv", "question,answer\nWho?,\n", "row 1: answer is missing"),
        ("d.csv", f'question,answer\n"{"x" * 200_000}', "more than 131,072 characters; is a dou"),
        ("d.csv", "question,answer\nWho?,A\x00nn\n", "line 2 contains a NUL character"),
        (
            "d.jsonl",
            '{"question": \n{}\n{broken}\n',
            "2 lines can't be used: line 1 .*; line 3 is not",
        ),
        (
            "d.csv",
            "question|answer\nWho, then?|Ann\n",
            "has one column, .*; part columns by a comma",
        ),
        ("d.csv", "question,answer\nWho?,Ann\n".encode("utf-16-le"), "as in utf-16-le or utf-16"),
        (
            "d.csv",
            b"PK\x03\x04\x14\x00",
            "an Excel workbook or a ZIP archive; save the sheet as CSV",
        ),
        ("d.jsonl", b"\x1f\x8b\x08\x00\xff", "it is compressed; unpack it"),
        ("d.json", "<!DOCTYPE html>\n<html></html>", "it is a web page; download the file itself"),
        ("d.json", LFS, "fetch the file with: git lfs pull"),
        ("d.parquet", LFS, "fetch the file with: git lfs pull"),
        (
            "d.xlsx",
            b"PK\x03\x04",
            r"ends in \.xlsx; save the sheet as CSV \(UTF-8\), or use \.json",
        ),
        ("d.csv", " \n", "is empty"),
        ("d.json", "", "is empty"),
        ("d.parquet", "PAR1", "no Parquet file"),
        ("d.txt", "x", r"ends in \.txt; use \.json, \.jsonl, \.ndjson, \.csv, \.tsv or \.parquet"),
    ],
)
def test_a_bad_file_is_named(tmp_path, name, text, message):
    with pytest.raises(DatasetError, match=message):
        read_samples(write(tmp_path, name, text))
    with pytest.raises(DatasetError, match=r"dataset\.path"):
        read_samples(tmp_path / "none.json")


def test_a_quote_that_is_not_closed_is_named_whatever_another_library_lets_a_cell_hold(tmp_path):
    path = write(tmp_path, "d.csv", f'question,answer\n"{"x" * 200_000}')
    before = csv.field_size_limit(sys.maxsize)  # as the release does where it reads CSV
    try:
        with pytest.raises(DatasetError, match="more than 131,072 characters; is a dou"):
            read_samples(path)
        assert csv.field_size_limit() == sys.maxsize
    finally:
        csv.field_size_limit(before)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)


@given(texts.filter(str.strip), texts.filter(str.strip))
def test_the_fingerprint_changes_with_every_field(question, answer):
    one = parse_samples([{**ROW, "question": question, "answer": answer}])
    other = parse_samples([{**ROW, "question": question, "answer": answer, "note": "x"}])
    again = parse_samples([{**ROW, "question": question, "answer": answer}])
    assert fingerprint_samples(one) == fingerprint_samples(again)
    assert fingerprint_samples(one) != fingerprint_samples(other)


def test_an_exact_repetition_is_asked_once_and_warned_of(tmp_path):
    rows = [ROW, {**ROW, "id": "2", "question": "where?", "answer": "Rome"}]
    again = [{**ROW, "id": "3", "question": " WHO?"}, {**rows[1], "answer": "ROME."}]
    elsewhere = {**ROW, "imdb_key": "b", "answer": "Zoe"}
    path = write(tmp_path, "d.json", json.dumps([*rows, *again, elsewhere]))
    found = read_dataset(path)
    assert [(s.imdb_key, s.ground_truth) for s in found.samples] == [
        ("a", "Ann"),
        ("a", "Rome"),
        ("b", "Zoe"),
    ]
    (warning,) = found.warnings
    assert "2 questions are there again with the same answer, and asked once" in warning
    assert "(e.g. rows 1 and 3)" in warning


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", "Question;Ground Truth;Index\nWer öffnet, wann?;Jürgen;a\n".encode("cp1252")),
        ("d.csv", '\ufeffQUESTION,expected-answer,imdb_key\r\n"Wer öffnet, wann?",Jürgen,a\r\n'),
        ("d.tsv", "query\treference\tindex\nWer öffnet, wann?\tJürgen\ta\n".encode("utf-16")),
        ("d.csv", "sep=;\nquestion;answer;index\nWer öffnet, wann?;Jürgen;a\n;;\n"),
        ("d.csv", 'question,answer,index,,\n"Wer öffnet, wann?",Jürgen,a,,\n'),
        ("d.csv", "question\tanswer\tindex\rWer öffnet, wann?\tJürgen\ta\r"),
        ("d.json", '{"v": 1, "questions": [{"Query": "Wer öffnet, wann?", "Answer": "Jürgen"}]}'),
        ("d.jsonl", '{"user_input": "Wer öffnet, wann?", "reference": "Jürgen"}\r\n'),
    ],
)
def test_what_is_unambiguous_is_read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (sample,) = read_dataset(path, only_key="a").samples
    assert (sample.question, sample.ground_truth) == ("Wer öffnet, wann?", "Jürgen")
    assert (sample.imdb_key, sample.tags) == ("a", {})


def test_rows_are_taken_as_a_data_frame_gives_them():
    rows = [{**ROW, "evidence": ["x"], "level": 2.5}, {"question": "Why?", "answer": "So"}]
    frame = pd.DataFrame(rows)
    frame["keywords"] = [np.array(["k"], dtype=object), None]
    one, two = as_samples(frame.to_dict("records"), ["a"])
    assert (one.evidence, one.keywords, one.tags) == (("x",), ("k",), {"level": 2.5})
    assert (two.imdb_key, two.evidence, two.keywords, two.tags) == ("a", (), (), {"level": None})
    with pytest.raises(DatasetError, match="row 2: answer is missing"):
        as_samples(pd.DataFrame([ROW, {"question": "Why?"}]).to_dict("records"), ["a"])
    for dataset in (frame, "qa.json", Path("qa.json"), ROW):
        with pytest.raises(DatasetError, match=r"not a list of rows; .*to_dict\('records'\)"):
            as_samples(dataset, ["a"])


def test_rows_that_are_asked_once_are_told_and_samples_of_one_id_refused():
    with pytest.warns(UserWarning, match="1 question is there again"):
        assert len(as_samples([ROW, ROW], ["a"])) == 1
    # Grades are kept by the id: one question would get those of the other.
    same = [Sample("x", key, "Who?", "Ann") for key in ("a", "b")]
    with pytest.raises(DatasetError, match="2 samples have the id 'x'"):
        as_samples(same, ["a", "b"])


def test_a_question_with_several_answers_is_asked_once_and_each_is_accepted(tmp_path):
    path = tmp_path / "d.json"
    rows = [
        {"question": "Who?", "answer": "Ann", "id": "1", "evidence": ["x"]},
        {"question": "Where?", "answer": "Rome", "id": "2"},
        {"question": "who? ", "answer": "Ann Bell.", "id": "3", "evidence": ["y"]},
        {"question": "Who?", "answer": "ann", "id": "4"},
        {"question": "Who?", "answer": "Mrs Bell", "id": "5"},
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    read = read_dataset(path, "a")
    who, where = read.samples
    assert (who.id, where.id, who.evidence) == ("1", "2", ("x", "y"))
    right = "Each of these answers is right:\n- Ann\n- Ann Bell.\n- Mrs Bell"
    assert (who.ground_truth, where.ground_truth) == (right, "Rome")
    (warning,) = read.warnings
    assert "3 questions are there again with another answer, and asked once" in warning
    for other in (
        {"answerable": False},
        {"assertions": ["x"]},
        {"answer": "", "assertions": ["x"]},
    ):
        path.write_text(json.dumps([rows[0], {**rows[2], **other}]), encoding="utf-8")
        with pytest.raises(DatasetError, match=r"rows 1 .* and 2 .* ask the same question"):
            read_dataset(path, "a")


def test_a_question_that_cannot_be_answered_needs_no_answer(tmp_path):
    path = tmp_path / "d.json"
    rows = [{"question": "Who?", "answerable": False}, {"question": "When?", "answer": "1720"}]
    path.write_text(json.dumps(rows), encoding="utf-8")
    who, when = read_dataset(path, "a").samples
    assert (who.ground_truth, who.answerable) == ("The documents do not say.", False)
    assert (when.ground_truth, when.answerable) == ("1720", True)


def test_all_faults_of_a_file_are_told_at_once(tmp_path):
    path = tmp_path / "d.json"
    rows = [{"question": f"Q{n}?", "answer": "" if n % 2 else "x"} for n in range(30)]
    path.write_text(
        json.dumps([*rows, {"question": "Q2?", "answer": "x", "answerable": 7}]), "utf-8"
    )
    with pytest.raises(DatasetError) as caught:
        read_dataset(path, "a")
    said = str(caught.value)
    assert "16 rows can't be used: row 2: answer is missing" in said
    assert said.count(": row ") == 1
    assert said.count("row ") == 11 - 1
    assert said.endswith("; and 6 more.")


def test_scalars_of_data_frames_are_taken_and_what_is_missing_is_none():
    rows = [
        {**ROW, "answer": np.int64(5), "answerable": np.bool_(True), "level": np.float64(2.5)},
        {
            "question": "Why?",
            "answer": "So",
            "imdb_key": pd.NA,
            "keywords": pd.NaT,
            "id": np.int32(7),
        },
    ]
    one, two = as_samples(rows, ["a"])
    assert (one.ground_truth, one.answerable, one.tags) == ("5", True, {"level": 2.5})
    assert (two.imdb_key, two.keywords, two.id) == ("a", (), "7")
    with pytest.raises(DatasetError, match="row 1: answer is missing"):
        as_samples([{"question": "Why?", "answer": pd.NA}], ["a"])


def test_the_numbers_of_rows_that_a_data_frame_writes_are_no_column(tmp_path):
    text = "\tPrompt\tAnswer\tlinks\n0\tWho?\tAnn\t\n1\tWhy?\tFor fun\tb\n"
    (one, two) = read_samples(write(tmp_path, "d.tsv", text), "a", {"question": "Prompt"})
    assert (one.question, one.ground_truth, one.tags) == ("Who?", "Ann", {})
    assert (two.ground_truth, two.tags) == ("For fun", {"links": "b"})


def test_a_guess_at_the_encoding_is_said(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes("question,answer\nWhose café?,Ann\n".encode("latin-1"))
    (warning,) = read_dataset(path, "a").warnings
    assert "was read as Windows-1252 (100% sure), e.g. 'café'" in warning
    for content, said in (
        (b"question\n\x81\n", r"may as well be .*; save it as UTF-8, or name its encoding in "),
        (BIG5.encode("big5"), "big5 .* is all that fits, but there is too little of it to be sure"),
        (b"\xff\xfea", "begins as utf-16 text, but is none"),
        ("question,answer\nKöln größer,é\n".encode() + b"\xff", "UTF-8 except for 1 .* line 3"),
    ):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=said):
            read_dataset(path)


BIG5 = """\
question,answer
阿什科姆的塔鐘是誰建造的？,鐘錶匠建造了塔鐘
誰偷走了銀鐘擺？,里德偷走了銀鐘擺並賣給了走私犯
"""
RUSSIAN = (
    "Кто починил большую лампу?",
    "На каком острове стоит маяк?",
    "Кто написал письмо Агнес?",
    "У кого Йонас научился ремеслу?",
    "Как называется стекольный завод в порту?",
    "Кто продал остров компании?",
    "Что нашла Надя на палубе?",
    "Когда построили старую башню?",
)
LONG = {
    "gbk": (
        "谁修理了大灯？",
        "灯塔在哪座岛上？",
        "谁写信给了艾格尼丝？",
        "约纳斯从谁那里学会了手艺？",
        "港口的玻璃工厂叫什么名字？",
        "谁把岛卖给了公司？",
        "娜佳在甲板上发现了什么？",
        "旧塔是什么时候建的？",
    ),
    "big5": (
        "誰修理了大燈？",
        "燈塔在哪座島上？",
        "誰寫信給了艾格尼絲？",
        "約納斯從誰那裡學會了手藝？",
        "港口的玻璃工廠叫什麼名字？",
        "誰把島賣給了公司？",
        "娜佳在甲板上發現了什麼？",
        "舊塔是什麼時候建的？",
    ),
    "cp949": (
        "누가 큰 등불을 고쳤습니까?",
        "등대는 어느 섬에 있습니까?",
        "누가 편지를 썼습니까?",
        "요나스는 누구에게서 기술을 배웠습니까?",
        "항구의 유리 공장 이름은 무엇입니까?",
        "누가 섬을 회사에 팔았습니까?",
        "나디아는 갑판에서 무엇을 찾았습니까?",
        "옛 탑은 언제 지어졌습니까?",
    ),
    "shift_jis": (
        "誰が大きなランプを修理しましたか。",
        "灯台はどの島にありますか。",
        "ヨナスは誰から技術を学びましたか。",
        "港のガラス工場の名前は何ですか。",
        "誰が島を会社に売りましたか。",
        "ナディアは甲板で何を見つけましたか。",
        "古い塔はいつ建てられましたか。",
    ),
    "euc_jp": (
        "誰が大きなランプを修理しましたか。",
        "灯台はどの島にありますか。",
        "ヨナスは誰から技術を学びましたか。",
        "港のガラス工場の名前は何ですか。",
        "誰が島を会社に売りましたか。",
        "ナディアは甲板で何を見つけましたか。",
        "古い塔はいつ建てられましたか。",
    ),
    "cp1251": RUSSIAN,
    "koi8_r": RUSSIAN,
    "cp1253": (
        "Ποιος επισκεύασε τη μεγάλη λάμπα;",
        "Σε ποιο νησί βρίσκεται ο φάρος;",
        "Ποιος έγραψε γράμμα στην Αγνή;",
        "Από ποιον έμαθε ο Γιόνας την τέχνη του;",
        "Πώς λέγεται το εργοστάσιο γυαλιού στο λιμάνι;",
        "Ποιος πούλησε το νησί στην εταιρεία;",
        "Τι βρήκε η Νάντια στο κατάστρωμα;",
        "Πότε χτίστηκε ο παλιός πύργος;",
    ),
    "cp1255": (
        "מי תיקן את המנורה הגדולה?",
        "באיזה אי נמצא המגדלור?",
        "מי כתב מכתב לאגנס?",
        "ממי למד יונס את מלאכתו?",
        "איך קוראים למפעל הזכוכית בנמל?",
        "מי מכר את האי לחברה?",
        "מה מצאה נדיה על הסיפון?",
        "מתי נבנה המגדל הישן?",
    ),
    "cp1256": (
        "من أصلح المصباح الكبير؟",
        "في أي جزيرة تقع المنارة؟",
        "من كتب رسالة إلى أغنيس؟",
        "ممن تعلم يوناس حرفته؟",
        "ما اسم مصنع الزجاج في الميناء؟",
        "من باع الجزيرة للشركة؟",
        "ماذا وجدت نادية على السطح؟",
        "متى بني البرج القديم؟",
    ),
    "cp1250": (
        "Kto naprawił wielką lampę?",
        "Na której wyspie stoi latarnia?",
        "Kto napisał list do Agnieszki?",
        "Od kogo Jonas nauczył się rzemiosła?",
        "Jak nazywa się huta szkła w porcie?",
        "Kto sprzedał wyspę spółce?",
        "Co znalazła Nadia na pokładzie?",
        "Kiedy zbudowano starą wieżę?",
    ),
    "iso8859_2": (
        "Kdo opravil velkou lampu?",
        "Na kterém ostrově stojí maják?",
        "Kdo napsal dopis Agnes?",
        "Od koho se Jonáš naučil řemeslu?",
        "Jak se jmenuje sklárna v přístavu?",
        "Kdo prodal ostrov společnosti?",
        "Co našla Naďa na palubě?",
        "Kdy byla postavena stará věž?",
    ),
    "cp1254": (
        "Büyük lambayı kim onardı?",
        "Deniz feneri hangi adada?",
        "Agnes'e mektubu kim yazdı?",
        "Jonas zanaatını kimden öğrendi?",
        "Limandaki cam fabrikasının adı ne?",
        "Adayı şirkete kim sattı?",
        "Nadia güvertede ne buldu?",
        "Eski kule ne zaman yapıldı?",
    ),
    "mac_roman": (
        "Wer reparierte die große Lampe?",
        "Über welchen Hafen?",
        "Où se trouve le phare de l’île ?",
        "Qui a réparé la grande lampe ?",
    ),
    "cp1252": (
        "Wer reparierte die große Lampe?",
        "Steht der Leuchtturm über dem Hafen?",
        "Wem gehört das Café in Köln?",
    ),
}
SURE = ("gbk", "big5", "cp949", "shift_jis", "cp1251", "koi8_r", "cp1253", "cp1256", "cp1252")


@pytest.mark.parametrize("encoding", LONG)
def test_no_text_is_read_in_an_encoding_that_is_not_its_own(tmp_path, encoding):
    path = tmp_path / "d.csv"
    for n in (8, 2, 1):
        questions = LONG[encoding][:n]
        rows = "".join(f'"{question}",Ann\n' for question in questions)
        path.write_bytes(f"question,answer\n{rows}".encode(encoding))
        said, found = "", questions
        try:
            found = tuple(sample.question for sample in read_dataset(path, "a").samples)
        except DatasetError as error:
            said = str(error)
        assert found == questions
        assert not said or "name its encoding in dataset.encoding of eval_config.yaml" in said
        assert not said or n < 8 or encoding not in SURE, said
        named = read_dataset(path, "a", encoding=encoding)
        assert tuple(sample.question for sample in named.samples) == questions
        assert named.warnings == ()


def test_parquet_is_read_with_its_lists_and_gaps(tmp_path):
    table = pd.DataFrame(
        {"question": ["Who?", "Where?"], "answer": ["Ann", 7], "evidence": [["x", "y"], None]}
    ).astype({"answer": str})
    table["level"] = [1.5, float("nan")]
    table.to_parquet(tmp_path / "d.parquet")
    one, two = read_samples(tmp_path / "d.parquet", "a")
    assert (one.evidence, two.evidence, one.tags, two.tags["level"]) == (
        ("x", "y"),
        (),
        {"level": 1.5},
        None,
    )


def test_numbers_and_separators_within_texts_are_kept(tmp_path):
    line = json.dumps({**ROW, "id": 7, "answer": 1938, "question": "A\u2028B?"}, ensure_ascii=False)
    (sample,) = read_samples(write(tmp_path, "d.jsonl", line))
    assert (sample.id, sample.ground_truth, sample.question) == ("7", "1938", "A\u2028B?")
    cell = 'question,answer,evidence\nWho?,Ann,"[""x | y"", ""z""]"\n'
    (sample,) = read_samples(write(tmp_path, "d.csv", cell), "a")
    assert sample.evidence == ("x | y", "z")


def test_columns_are_named_by_the_user(tmp_path):
    path = write(tmp_path, "d.csv", "Frage;Antwort;Stelle;answer\nWer?;Ann;a | b;x\n")
    with pytest.raises(DatasetError) as refused:
        read_samples(path, "a")
    said = str(refused.value)
    assert "no column for the question (columns found: 'Frage', 'Antwort', 'Stelle', 'ans" in said
    assert "under dataset.columns: question: COLUMN" in said
    columns = {"question": "frage", "answer": "Antwort", "evidence": "Stelle"}
    (sample,) = read_samples(path, "a", columns)
    assert (sample.question, sample.ground_truth, sample.evidence) == ("Wer?", "Ann", ("a", "b"))
    assert sample.tags == {}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"question": "Fragen"}, "no column is called 'Fragen', .* columns found: 'Frage', 'Ant"),
        ({"questoin": "Frage"}, "no field 'questoin'; did you mean 'question'"),
        ({"question": "Frage", "answer": "Frage"}, "'Frage' is given for two fields"),
    ],
)
def test_a_mapping_that_fits_nothing_is_refused(tmp_path, columns, message):
    with pytest.raises(DatasetError, match=message):
        read_samples(write(tmp_path, "d.csv", "Frage,Antwort\nWer?,Ann\n"), "a", columns)


def test_an_answer_beside_a_reference_is_refused_where_they_differ(tmp_path):
    same = write(tmp_path, "same.csv", "question,answer,ground_truth\nWho?,Ann,Ann\n")
    assert read_samples(same, "a")[0].ground_truth == "Ann"
    path = write(tmp_path, "d.csv", "question,answer,ground_truth\nWho?,It was Ben,Ann\n")
    with pytest.raises(DatasetError, match="answer and ground_truth may both be the answer"):
        read_samples(path, "a")
    (sample,) = read_samples(path, "a", {"answer": "ground_truth"})
    assert (sample.ground_truth, sample.tags) == ("Ann", {})


def test_of_other_columns_the_one_with_the_own_name_counts():
    (sample,) = parse_samples([{**ROW, "query": "SELECT 1", "index": "0", "question_id": "x"}])
    assert (sample.question, sample.imdb_key) == ("Who?", "a")
    assert sample.tags == {"query": "SELECT 1", "index": "0"}
    with pytest.raises(DatasetError, match="query and user_input may both be the question"):
        parse_samples([{"query": "Who?", "user_input": "Why?", "answer": "Ann"}], "a")


OKAY, NOT = {"text": "Or so.", "weight": "okay"}, {"text": "No.", "must": "not_say"}
QUOTED = json.dumps([{"text": "It is red."}, OKAY, NOT]).replace('"', '""')
BENCHMARK = {"statement": "It is red.", "score": 9, "rank": 1, "source_count": 2, "reasoning": "r"}
AUTOQ = {"id": "u1", "text": "Who?", "question_type": "data_global", "references": None}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.json", [{"question": "Who?", "assertions": ["It is red.", OKAY, NOT]}]),
        ("d.csv", f'question,assertions\nWho?,"{QUOTED}"\n'),
        ("d.json", [{"question_id": "u1", "question_text": "Who?", "assertions": [BENCHMARK]}]),
        ("d.json", [{**AUTOQ, "attributes": {"assertions": [BENCHMARK], "claims": []}}]),
        ("d.csv", "question,assertions\nWho?,It is red.\n"),
    ],
)
def test_assertions_are_read_in_every_form(tmp_path, name, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (sample,) = read_samples(write(tmp_path, name, text), "a")
    held = [(each.text, each.weight, each.must) for each in sample.assertions]
    more = [("Or so.", "okay", "say"), ("No.", "vital", "not_say")] if "Or so" in text else []
    assert held == [("It is red.", "vital", "say"), *more]
    assert (sample.question, sample.ground_truth) == ("Who?", "")
    assert Sample.from_dict(sample.to_dict()) == sample
    other = replace(sample, assertions=())
    assert fingerprint_samples([other]) != fingerprint_samples([sample])


def test_autoq_questions_without_assertions_are_left_out_and_counted(tmp_path):
    bare = {**AUTOQ, "id": "u2", "text": "Why?", "attributes": None}
    rows = [bare, {**AUTOQ, "attributes": {"assertions": [BENCHMARK]}}]
    found = read_dataset(write(tmp_path, "d.json", json.dumps(rows)), "a")
    assert [sample.id for sample in found.samples] == ["u1"]
    assert "1 of AutoQ's questions have no assertions: left out" in found.warnings[0]
    with pytest.raises(DatasetError, match="row 1: answer is missing"):
        parse_samples([bare], "a")
