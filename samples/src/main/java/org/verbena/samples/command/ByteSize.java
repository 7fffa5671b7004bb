package org.verbena.samples.command;

import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Sizes as people write them: {@code 64}, {@code 64k}, {@code 1m}; powers of 1024. */
public final class ByteSize implements ITypeConverter<Integer> {
    @Override
    public Integer convert(String text) {
        String digits = text.toLowerCase(Locale.ROOT);
        long unit = 1;
        if (digits.endsWith("k") || digits.endsWith("m") || digits.endsWith("g")) {
            char suffix = digits.charAt(digits.length() - 1);
            unit = suffix == 'k' ? 1L << 10 : suffix == 'm' ? 1L << 20 : 1L << 30;
            digits = digits.substring(0, digits.length() - 1);
        }
        try {
            return Math.toIntExact(Math.multiplyExact(Long.parseLong(digits), unit));
        } catch (NumberFormatException | ArithmeticException wrong) {
            throw new TypeConversionException("'" + text + "' is not a size such as 64, 64k or 1m, below 2 GiB");
        }
    }
}
