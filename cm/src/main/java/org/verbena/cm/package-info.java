/** cm. */
package org.verbena.cm;
