// Reading the text of polynomials and programs: recursive descent without recursion, one function per kind of line of docs/text.md.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "describe/text.hpp"
#include "describe/text_cursor.hpp"

namespace clebsch {
namespace {

constexpr std::size_t max_text = std::size_t{1} << 28;  // bytes
// A short text may apply a long polynomial often; every node holds a copy of it.
constexpr std::size_t max_copied_paths = std::size_t{1} << 22;

/// Runs a parser of a part of the text; its errors get our line and column.
template <class Parse>
auto located(const TextCursor& cursor, std::size_t position, Parse&& parse) {
    try {
        return parse();
    } catch (const Error& error) { cursor.error(position, error.what()); }
}

template <class Check>
void validated(const std::string& what, Check&& check) {
    try {
        check();
    } catch (const Error& error) { throw Error(ErrorKind::parse, what + ": " + error.what()); }
}

TextCursor begin_text(std::string_view text, const std::string& kind) {
    TextCursor cursor(text, kind + " text");
    if (text.size() > max_text) {
        throw Error(ErrorKind::parse,
                    kind + " text: " + std::to_string(text.size()) + " bytes, at most " + std::to_string(max_text) + " are read");
    }
    cursor.skip_space();
    if (!cursor.accept("clebsch") || !cursor.accept(kind)) cursor.expected("'clebsch " + kind + " 0', the first line");
    cursor.skip_blank();
    const std::size_t version_at = cursor.position();
    if (const auto version = cursor.integer("a version number"); version != 0) {
        cursor.error(version_at, "version " + std::to_string(version) + " is newer than this library, which reads version 0");
    }
    cursor.end_of_line();
    cursor.expect("basis");
    if (!cursor.accept("e3nn-0.5")) {
        cursor.expected("'e3nn-0.5', the basis of every text (e3nn 0.4's signs are coefficients of their own, cg04)");
    }
    cursor.end_of_line();
    return cursor;
}

int small_integer(TextCursor& cursor, std::string_view what) {
    cursor.skip_blank();
    const std::size_t at = cursor.position();
    const std::int64_t value = cursor.integer(what);
    if (value > std::numeric_limits<int>::max()) cursor.error(at, "this number does not fit in 32 bits");
    return static_cast<int>(value);
}

std::vector<Segment> segments(TextCursor& cursor) {
    if (cursor.accept("()")) return {};
    std::vector<Segment> result;
    do {
        Segment segment;
        segment.multiplicity = cursor.integer("a segment such as 16x1o or 16x(3)");
        cursor.skip_blank();
        if (cursor.peek() != 'x') cursor.expected("'x' and an irrep or a number of components");
        cursor.take();
        cursor.skip_blank();
        if (cursor.accept("(")) {
            segment.components = small_integer(cursor, "the number of components");
            cursor.expect(")");
        } else {
            const std::size_t begin = cursor.position();
            while (cursor.peek() >= '0' && cursor.peek() <= '9') cursor.take();
            if (cursor.peek() == 'e' || cursor.peek() == 'o') cursor.take();
            if (cursor.position() == begin) cursor.expected("an irrep such as 1o, or a number of components in parentheses");
            segment.irrep = located(cursor, begin, [&] { return parse_irrep(cursor.between(begin, cursor.position())); });
            segment.components = segment.irrep->dim();
        }
        result.push_back(segment);
    } while (cursor.accept("+"));
    return result;
}

Layout layout(TextCursor& cursor) {
    if (cursor.accept("mul_ir")) return Layout::mul_ir;
    if (!cursor.accept("ir_mul")) cursor.expected("the layout, mul_ir or ir_mul");
    return Layout::ir_mul;
}

Index index_line(TextCursor& cursor) {
    Index index;
    index.name = cursor.name("the name of an index");
    cursor.expect(":");
    index.from = cursor.name("a row space");
    cursor.expect("->");
    index.to = cursor.name("a row space");
    index.sorted = cursor.accept("sorted");
    cursor.end_of_line();
    return index;
}

Operand operand_line(TextCursor& cursor, Role role) {
    Operand operand;
    operand.role = role;
    operand.name = cursor.name("the name of an operand");
    cursor.expect(":");
    operand.segments = segments(cursor);
    operand.layout = layout(cursor);
    cursor.expect("@");
    if (cursor.accept("each")) {
        operand.rows = each_row();
    } else if (cursor.accept("shared")) {
        operand.rows = shared_row();
    } else {
        operand.rows.kind = Addressing::Kind::indexed;
        do operand.rows.via.push_back(cursor.name("each, shared or the name of an index"));
        while (cursor.accept("->"));
    }
    cursor.end_of_line();
    return operand;
}

/// Paths of one polynomial: names of operands are looked up in a map, since there may be many of both.
class PathReader {
 public:
    PathReader(TextCursor& cursor, const Polynomial& polynomial) : cursor_(cursor) {
        for (std::size_t i = 0; i < polynomial.operands.size(); ++i) operands_.emplace(polynomial.operands[i].name, static_cast<int>(i));
    }

    Path line() {
        Path path;
        axes_.clear();
        while (!cursor_.accept(":")) {
            cursor_.skip_blank();
            const char letter = cursor_.peek();
            if (letter < 'a' || letter > 'z') cursor_.expected("the extent of a letter such as u=16, or ':'");
            cursor_.take();
            cursor_.expect("=");
            path.extents.emplace_back(letter, cursor_.integer("the extent of a letter"));
        }
        std::sort(path.extents.begin(), path.extents.end());
        // The output comes first in the text, but its axis is known only after the coefficients.
        PendingFactor output = factor();
        cursor_.expect("+=");
        bool more = true;
        const auto next = [&] {
            more = cursor_.accept("*");
            if (more) cursor_.skip_space();
        };
        cursor_.skip_space();
        const char first = cursor_.peek();
        if ((first >= '0' && first <= '9') || first == '-' || first == '.') {
            path.scale = cursor_.number("a number");
            next();
        }
        if (more && coefficients(path)) next();
        while (more) {
            path.factors.push_back(resolved(factor()));
            next();
        }
        path.factors.push_back(resolved(std::move(output)));
        cursor_.end_of_line();
        return path;
    }

 private:
    struct PendingFactor {
        Factor factor;
        std::string axis;
        std::size_t axis_at = 0;
    };

    Factor resolved(PendingFactor pending) const {
        if (pending.axis.empty()) return pending.factor;
        const auto axis = std::find(axes_.begin(), axes_.end(), pending.axis);
        if (axis == axes_.end()) cursor_.error(pending.axis_at, "no axis of the coefficients is called '" + pending.axis + "'");
        pending.factor.axis = static_cast<int>(axis - axes_.begin());
        return pending.factor;
    }

    PendingFactor factor() {
        PendingFactor result;
        std::tie(result.factor.operand, result.factor.segment) = operand_and_segment();
        if (!cursor_.accept("[")) return result;
        for (cursor_.skip_space(); is_channel(cursor_.peek()); cursor_.skip_space()) result.factor.channels += cursor_.take();
        if (cursor_.accept("|")) {
            cursor_.skip_space();
            result.axis_at = cursor_.position();
            result.axis = cursor_.name("the axis of the coefficients that the component runs over");
            cursor_.skip_space();
        }
        if (!cursor_.accept("]")) cursor_.expected("a channel letter a-z, '|' and an axis, or ']'");
        return result;
    }

    /// x.0, layer.1.x.0 (operand layer.1.x), "each".0: names may have dots, so the last one separates.
    std::pair<int, int> operand_and_segment() {
        cursor_.skip_blank();
        const std::size_t begin = cursor_.position();
        std::string name;
        if (const std::string_view word = cursor_.peek_word(); word.empty()) {
            name = cursor_.name("a factor such as x.0[u|i]");
        } else {
            const std::size_t dot = word.rfind('.');
            if (dot == std::string_view::npos)
                cursor_.error(begin, "expected a factor such as x.0[u|i], found '" + std::string(word) + "'");
            name = word.substr(0, dot);
            cursor_.set_position(begin + dot);
        }
        const auto operand = operands_.find(name);
        if (operand == operands_.end()) cursor_.error(begin, "no operand is called '" + name + "'");
        if (cursor_.peek() != '.') cursor_.expected("'.' and the number of a segment");
        cursor_.take();
        return {operand->second, small_integer(cursor_, "the number of a segment")};
    }

    static bool is_channel(char c) { return (c >= 'a' && c <= 'z') || c == '(' || c == ')' || c == '<'; }

    /// A call or a literal with its axes, if one is here.
    bool coefficients(Path& path) {
        cursor_.skip_space();
        const std::size_t begin = cursor_.position();
        if (cursor_.peek() == '{') {
            path.coefficients = literal();
        } else {
            const std::string_view word = cursor_.peek_word();
            if (word.empty()) return false;
            cursor_.set_position(begin + word.size());
            if (!cursor_.accept("(")) {
                cursor_.set_position(begin);
                return false;
            }
            std::string call = std::string(word) + '(';
            for (cursor_.skip_space(); cursor_.peek() != ')'; cursor_.skip_space()) {
                if (cursor_.at_end()) cursor_.expected("')'");
                call += cursor_.take();
            }
            call += cursor_.take();
            path.coefficients = located(cursor_, begin, [&] { return Coefficients::named(call); });
        }
        const std::size_t rank = path.coefficients.rank();
        if (rank > 0) {
            cursor_.expect("[");
            do {
                cursor_.skip_space();
                const std::size_t at = cursor_.position();
                axes_.push_back(cursor_.name("a name for an axis"));
                if (std::count(axes_.begin(), axes_.end(), axes_.back()) > 1)
                    cursor_.error(at, "two axes are called '" + axes_.back() + "'");
                if (axes_.size() > rank) cursor_.error(at, "the coefficients have only " + std::to_string(rank) + " axes");
                cursor_.skip_space();
            } while (cursor_.accept(","));
            if (axes_.size() < rank) cursor_.expected("',' and another axis, the coefficients have " + std::to_string(rank));
            cursor_.expect("]");
        }
        return true;
    }

    /// {3,3; 0,1: 0.5; 1,0: -0.5}
    Coefficients literal() {
        cursor_.skip_blank();
        const std::size_t begin = cursor_.position();
        cursor_.expect("{");
        const auto integers = [&](std::string_view what) {
            std::vector<int> list;
            cursor_.skip_space();
            if (cursor_.peek() < '0' || cursor_.peek() > '9') return list;  // rank 0
            do {
                cursor_.skip_space();
                list.push_back(small_integer(cursor_, what));
                cursor_.skip_space();
            } while (cursor_.accept(","));
            return list;
        };
        const std::vector<int> shape = integers("the extent of an axis");
        std::vector<CoefficientEntry> entries;
        while (cursor_.accept(";")) {
            CoefficientEntry entry;
            const std::size_t at = cursor_.position();
            entry.index = integers("an index");
            if (entry.index.size() != shape.size()) {
                cursor_.error(
                    at, "expected " + std::to_string(shape.size()) + " indices, one per axis, found " + std::to_string(entry.index.size()));
            }
            cursor_.expect(":");
            cursor_.skip_space();
            entry.value = cursor_.number("the value of an entry");
            entries.push_back(std::move(entry));
            cursor_.skip_space();
        }
        if (!cursor_.accept("}")) cursor_.expected("';' and another entry, or '}'");
        return located(cursor_, begin, [&] { return Coefficients::literal(shape, std::move(entries)); });
    }

    TextCursor& cursor_;
    std::map<std::string, int, std::less<>> operands_;
    std::vector<std::string> axes_;
};

/// rows, indices, operands, paths: up to the first line that is none of these.
Polynomial polynomial_body(TextCursor& cursor) {
    Polynomial polynomial;
    cursor.expect("rows");
    polynomial.rows = cursor.name("the name of the iteration space");
    cursor.end_of_line();
    while (cursor.accept("index")) polynomial.indices.push_back(index_line(cursor));
    while (true) {
        if (cursor.accept("input")) {
            polynomial.operands.push_back(operand_line(cursor, Role::input));
        } else if (cursor.accept("output")) {
            polynomial.operands.push_back(operand_line(cursor, Role::output));
        } else {
            break;
        }
    }
    PathReader paths(cursor, polynomial);
    while (cursor.accept("path")) polynomial.paths.push_back(paths.line());
    return polynomial;
}

class ProgramReader {
 public:
    explicit ProgramReader(TextCursor& cursor) : cursor_(cursor) {}

    Program read() {
        while (cursor_.accept("index")) program_.indices.push_back(index_line(cursor_));
        while (cursor_.accept("value")) value_line();
        program_.inputs = names("inputs");
        program_.outputs = names("outputs");
        while (cursor_.accept("polynomial")) definition();
        while (!cursor_.at_end()) node_line();
        return std::move(program_);
    }

 private:
    void value_line() {
        Value value;
        cursor_.skip_blank();
        const std::size_t at = cursor_.position();
        value.name = cursor_.name("the name of a value");
        cursor_.expect(":");
        value.segments = segments(cursor_);
        value.layout = layout(cursor_);
        cursor_.expect("@");
        if (!cursor_.accept("shared")) value.space = cursor_.name("a row space or shared");
        if (!values_.emplace(value.name, static_cast<int>(program_.values.size())).second) {
            cursor_.error(at, "there already is a value called '" + value.name + "'");
        }
        program_.values.push_back(std::move(value));
        cursor_.end_of_line();
    }

    int value() {
        cursor_.skip_blank();
        const std::size_t at = cursor_.position();
        const std::string name = cursor_.name("the name of a value");
        const auto found = values_.find(name);
        if (found == values_.end()) cursor_.error(at, "no value is called '" + name + "'");
        return found->second;
    }

    std::vector<int> names(std::string_view word) {
        std::vector<int> list;
        cursor_.expect(word);
        cursor_.skip_blank();
        if (cursor_.peek() != '\n' && !cursor_.at_end()) {
            do list.push_back(value());
            while (cursor_.accept(","));
        }
        cursor_.end_of_line();
        return list;
    }

    void definition() {
        cursor_.skip_blank();
        const std::size_t at = cursor_.position();
        if (small_integer(cursor_, "the number of the polynomial") != static_cast<int>(polynomials_.size())) {
            cursor_.error(at, "polynomials are numbered from 0 in order, this one is number " + std::to_string(polynomials_.size()));
        }
        cursor_.end_of_line();
        polynomials_.push_back(polynomial_body(cursor_));
        if (!cursor_.accept("end")) cursor_.expected("a line of the polynomial (index, input, output, path) or 'end'");
        cursor_.end_of_line();
    }

    void node_line() {
        cursor_.skip_blank();
        const std::size_t at = cursor_.position();
        std::vector<int> results;
        if (!cursor_.accept("=")) {
            do results.push_back(value());
            while (cursor_.accept(","));
            cursor_.expect("=");
        }
        if (cursor_.accept("polynomial")) {
            apply(results, at);
        } else {
            if (results.size() != 1) cursor_.error(at, "a function has one result, " + std::to_string(results.size()) + " are named here");
            cursor_.skip_blank();
            const std::size_t begin = cursor_.position();
            const std::string_view word = cursor_.peek_word();
            if (word.empty()) cursor_.expected("'polynomial' and its number, or a function such as silu");
            cursor_.set_position(begin + word.size());
            if (word == "power" || word == "sinc") {
                cursor_.expect("(");
                cursor_.number("the parameter of the function");
                cursor_.expect(")");
            }
            FunctionNode node;
            node.function = located(cursor_, begin, [&] { return parse_function(cursor_.between(begin, cursor_.position())); });
            cursor_.expect("(");
            node.input = value();
            cursor_.expect(")");
            node.output = results[0];
            program_.nodes.emplace_back(node);
        }
        cursor_.end_of_line();
    }

    void apply(const std::vector<int>& results, std::size_t at) {
        cursor_.skip_blank();
        const std::size_t number_at = cursor_.position();
        const auto number = static_cast<std::size_t>(small_integer(cursor_, "the number of a polynomial"));
        if (number >= polynomials_.size())
            cursor_.error(number_at, "there are " + std::to_string(polynomials_.size()) + " polynomials above");
        std::vector<int> arguments;
        cursor_.expect("(");
        if (!cursor_.accept(")")) {
            do {
                cursor_.skip_space();
                arguments.push_back(value());
                cursor_.skip_space();
            } while (cursor_.accept(","));
            cursor_.expect(")");
        }
        const Polynomial& polynomial = polynomials_[number];
        const auto outputs = static_cast<std::size_t>(std::count_if(polynomial.operands.begin(), polynomial.operands.end(),
                                                                    [](const Operand& operand) { return operand.role == Role::output; }));
        const std::size_t inputs = polynomial.operands.size() - outputs;
        if (results.size() != outputs || arguments.size() != inputs) {
            cursor_.error(at, "polynomial " + std::to_string(number) + " has " + std::to_string(outputs) + " outputs and " +
                                  std::to_string(inputs) + " inputs, here are " + std::to_string(results.size()) + " and " +
                                  std::to_string(arguments.size()));
        }
        copied_paths_ += polynomial.paths.size() + polynomial.operands.size() + 1;
        if (copied_paths_ > max_copied_paths) {
            cursor_.error(at, "the nodes up to here have more than " + std::to_string(max_copied_paths) + " operands and paths");
        }
        PolynomialNode node{polynomial, {}};
        auto result = results.begin();
        auto argument = arguments.begin();
        for (const Operand& operand : polynomial.operands) node.arguments.push_back(operand.role == Role::output ? *result++ : *argument++);
        program_.nodes.emplace_back(std::move(node));
    }

    TextCursor& cursor_;
    Program program_;
    std::map<std::string, int, std::less<>> values_;
    std::vector<Polynomial> polynomials_;
    std::size_t copied_paths_ = 0;
};

}  // namespace

Polynomial parse_polynomial(std::string_view text) {
    TextCursor cursor = begin_text(text, "polynomial");
    Polynomial polynomial = polynomial_body(cursor);
    if (!cursor.at_end()) cursor.expected("a line that begins with index, input, output or path (in this order)");
    validated("polynomial text", [&] { validate(polynomial); });
    return polynomial;
}

Program parse_program(std::string_view text) {
    TextCursor cursor = begin_text(text, "program");
    Program program = ProgramReader(cursor).read();
    validated("program text", [&] { validate(program); });
    return program;
}

}  // namespace clebsch
