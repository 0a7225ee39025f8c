# Finds QCustomPlot built for Qt 6 as the target QCustomPlotQt6::QCustomPlotQt6: by its own CMake files where the distribution has them
# (Debian), else by header and library. The plain "qcustomplot" library is the build for Qt 5 on some systems, so it comes last.
find_package(Qt6 REQUIRED COMPONENTS Widgets PrintSupport)
find_package(QCustomPlotQt6 CONFIG QUIET)
if(NOT TARGET QCustomPlotQt6::QCustomPlotQt6)
  find_path(QCustomPlotQt6_INCLUDE_DIR qcustomplot.h)
  find_library(QCustomPlotQt6_LIBRARY NAMES QCustomPlotQt6 qcustomplot-qt6 qcustomplot)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(QCustomPlotQt6 REQUIRED_VARS QCustomPlotQt6_LIBRARY QCustomPlotQt6_INCLUDE_DIR)
  if(QCustomPlotQt6_FOUND)
    add_library(QCustomPlotQt6::QCustomPlotQt6 UNKNOWN IMPORTED)
    set_target_properties(QCustomPlotQt6::QCustomPlotQt6 PROPERTIES
      IMPORTED_LOCATION "${QCustomPlotQt6_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${QCustomPlotQt6_INCLUDE_DIR}"
      INTERFACE_COMPILE_DEFINITIONS QCUSTOMPLOT_USE_LIBRARY
      INTERFACE_LINK_LIBRARIES "Qt6::Widgets;Qt6::PrintSupport")
  endif()
endif()
